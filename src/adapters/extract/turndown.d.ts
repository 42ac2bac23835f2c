/** The part of turndown that is used here; the package has no types of its own. */
declare module "turndown" {
  export interface HtmlNode {
    readonly nodeName: string;
    readonly parentNode: HtmlNode | null;
    readonly firstChild: HtmlNode | null;
    readonly children: ArrayLike<HtmlNode>;
    readonly textContent: string;
    getAttribute(name: string): string | null;
    getElementsByTagName(name: string): ArrayLike<HtmlNode>;
  }

  export interface Rule {
    readonly filter: string | readonly string[] | ((node: HtmlNode) => boolean);
    readonly replacement: (content: string, node: HtmlNode) => string;
  }

  export interface TurndownOptions {
    readonly headingStyle?: "atx" | "setext";
    readonly hr?: string;
    readonly bulletListMarker?: "-" | "+" | "*";
    readonly codeBlockStyle?: "fenced" | "indented";
    readonly emDelimiter?: "_" | "*";
    readonly br?: string;
  }

  export default class TurndownService {
    constructor(options?: TurndownOptions);
    addRule(name: string, rule: Rule): this;
    escape(text: string): string;
    turndown(html: string): string;
  }
}
