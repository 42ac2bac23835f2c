import { createHash } from "node:crypto";

/** Pages of ours: plain HTML, one style sheet inside, no script at all. */
const STYLE = `
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { margin: 2rem auto; max-width: 60rem; padding: 0 1rem; }
h2 { border-bottom: 1px solid; margin-top: 3rem; }
article { margin: 2rem 0; }
code, pre { font: 0.875rem/1.4 ui-monospace, monospace; overflow-wrap: anywhere; }
pre { border: 1px solid; overflow-x: auto; padding: 0.5rem; }
table { border-collapse: collapse; width: 100%; }
th, td { border-bottom: 1px solid #8884; padding: 0.25rem 0.5rem; text-align: left; vertical-align: top; }
.method { font-weight: bold; text-transform: uppercase; }
.scope { float: right; }
`;

const styleHash = createHash("sha256").update(STYLE).digest("base64");

export const PAGE_HEADERS: Readonly<Record<string, string>> = {
  "content-security-policy": `default-src 'none'; style-src 'sha256-${styleHash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
};

/** HTML that is finished: everything put into it was escaped. */
export class Html {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** Escapes what is put in, except HTML and lists of it. */
export function html(strings: TemplateStringsArray, ...values: readonly unknown[]): Html {
  return new Html(strings.reduce((text, next, index) => text + shown(values[index - 1]) + next));
}

export function page(title: string, content: Html): string {
  return html`<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${title}</title><style>${new Html(STYLE)}</style></head>
<body>
${content}
</body>
</html>
`.text;
}

function shown(value: unknown): string {
  if (value instanceof Html) return value.text;
  if (Array.isArray(value)) return value.map(shown).join("");
  return String(value ?? "")
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;")
    .replaceAll("'", "&#39;");
}
