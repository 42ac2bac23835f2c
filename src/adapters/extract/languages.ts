/** Extensions of files that are kept as they are, in a fenced block of that language. */
const LANGUAGES: Readonly<Record<string, readonly string[]>> = {
  bash: ["sh", "bash", "zsh", "ksh"],
  bat: ["bat", "cmd"],
  c: ["c", "h"],
  clojure: ["clj", "cljs", "cljc", "edn"],
  cpp: ["cpp", "cc", "cxx", "hpp", "hh", "hxx", "ino"],
  csharp: ["cs", "csx"],
  css: ["css"],
  dart: ["dart"],
  diff: ["diff", "patch"],
  dockerfile: ["dockerfile"],
  elixir: ["ex", "exs"],
  elm: ["elm"],
  erlang: ["erl", "hrl"],
  fortran: ["f", "f90", "f95", "for"],
  fsharp: ["fs", "fsx"],
  go: ["go"],
  graphql: ["graphql", "gql"],
  groovy: ["groovy", "gradle"],
  haskell: ["hs", "lhs"],
  hcl: ["tf", "hcl", "tfvars"],
  ini: ["ini", "cfg", "conf", "properties", "env", "editorconfig"],
  java: ["java"],
  javascript: ["js", "mjs", "cjs"],
  json: ["json", "jsonl", "ndjson", "json5", "jsonc", "ipynb", "geojson"],
  jsx: ["jsx"],
  julia: ["jl"],
  kotlin: ["kt", "kts"],
  less: ["less"],
  lisp: ["lisp", "lsp", "el", "scm", "rkt"],
  log: ["log"],
  lua: ["lua"],
  makefile: ["makefile", "mk"],
  matlab: ["m"],
  nix: ["nix"],
  ocaml: ["ml", "mli"],
  pascal: ["pas", "pp"],
  perl: ["pl", "pm"],
  php: ["php", "phtml"],
  powershell: ["ps1", "psm1", "psd1"],
  protobuf: ["proto"],
  python: ["py", "pyi", "pyw"],
  r: ["r"],
  ruby: ["rb", "rake", "gemspec"],
  rust: ["rs"],
  scala: ["scala", "sc", "sbt"],
  scss: ["scss", "sass"],
  solidity: ["sol"],
  sql: ["sql"],
  svelte: ["svelte"],
  swift: ["swift"],
  toml: ["toml"],
  tsx: ["tsx"],
  typescript: ["ts", "mts", "cts"],
  verilog: ["v", "sv"],
  vhdl: ["vhd", "vhdl"],
  vue: ["vue"],
  xml: ["xml", "xsd", "xsl", "xslt", "svg", "plist", "rss", "atom", "wsdl"],
  yaml: ["yaml", "yml"],
  zig: ["zig"],
};

const BY_EXTENSION = new Map(
  Object.entries(LANGUAGES).flatMap(([language, extensions]) =>
    extensions.map((extension) => [extension, language] as const),
  ),
);

/** In lower case and without the dot; a name without one stands for itself, as Dockerfile does. */
export function extensionOf(filename: string): string {
  const name = filename.slice(Math.max(filename.lastIndexOf("/"), filename.lastIndexOf("\\")) + 1);
  return name.slice(name.lastIndexOf(".") + 1).toLowerCase();
}

export function languageOf(filename: string): string | undefined {
  return BY_EXTENSION.get(extensionOf(filename));
}
