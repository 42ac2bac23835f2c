const ARTICLE = /^(?:the|a|an)\s+/;
const TITLE = /^(?:mr|mrs|ms|miss|dr|prof|professor|sir|lady)\s+/;

/** Names that mean the same become the same: case, form, articles, titles, possessives and punctuation do not count. */
export function normaliseName(name: string): string {
  const plain = name
    .normalize("NFKC")
    .toLowerCase()
    .replaceAll(/['’]s?\b/g, "")
    .replaceAll(/[^\p{L}\p{N}&+#]+/gu, " ")
    .trim();
  const short = plain.replace(ARTICLE, "").replace(TITLE, "");
  return short === "" ? plain : short;
}
