import { readFile } from "node:fs/promises";
import { join, relative, sep } from "node:path";
import ignore, { type Ignore } from "ignore";

/** Which files of a folder are wanted. Patterns are those of .gitignore files. */
export interface IgnoreRules {
  /** Why a path below the folder is left out; undefined when it is wanted. */
  whyLeftOut(path: string, isFolder: boolean): string | undefined;
  /** The same rules, and those that a folder's own .gitignore adds. */
  within(folder: string): Promise<IgnoreRules>;
  /** The same for a .gitignore of that folder that was read already. */
  with(folder: string, gitignore: string): IgnoreRules;
}

interface Layer {
  readonly base: string;
  readonly rules: Ignore;
}

export function ignoreRules(options: {
  root: string;
  /** Only files that match one of these. */
  patterns?: readonly string[] | undefined;
  ignored?: readonly string[] | undefined;
}): IgnoreRules {
  const { root, patterns, ignored } = options;
  const wanted = patterns && patterns.length > 0 ? ignore().add([...patterns]) : undefined;
  const own = { base: root, rules: ignore().add([...(ignored ?? [])]) };
  return rulesOf({ root, wanted, layers: [own] });
}

function rulesOf(known: { root: string; wanted: Ignore | undefined; layers: readonly Layer[] }): IgnoreRules {
  const { root, wanted, layers } = known;
  const rules: IgnoreRules = {
    whyLeftOut: (path, isFolder) => {
      if (isIgnored(layers, path, isFolder)) return "left out by a pattern or a .gitignore";
      if (isFolder || !wanted || wanted.ignores(below(root, path))) return undefined;
      return "matches none of the patterns";
    },
    within: async (folder) => {
      const text = await readFile(join(folder, ".gitignore"), "utf8").catch(() => undefined);
      return text === undefined ? rules : rules.with(folder, text);
    },
    with: (folder, gitignore) =>
      rulesOf({ ...known, layers: [...layers, { base: folder, rules: ignore().add(gitignore) }] }),
  };
  return rules;
}

/** The nearest .gitignore that has something to say decides. */
function isIgnored(layers: readonly Layer[], path: string, isFolder: boolean): boolean {
  for (const { base, rules } of layers.toReversed()) {
    const { ignored, unignored } = rules.test(below(base, path) + (isFolder ? "/" : ""));
    if (unignored) return false;
    if (ignored) return true;
  }
  return false;
}

function below(base: string, path: string): string {
  return relative(base, path).split(sep).join("/");
}
