const NAME = /^[\p{L}\p{N}_][\p{L}\p{N} _.:/@-]{0,99}$/u;

/** What tenants and collections may be called, for whoever chose another name. */
export const NAMES_ARE = "use 1 to 100 letters, digits and _ . : / @ - and begin with a letter, a digit or _";

export function isName(text: string): boolean {
  return NAME.test(text);
}
