import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { shortHash } from "./keys.ts";

export interface Project {
  readonly root: string;
  readonly type: string;
  readonly git_remote: string | undefined;
  /** From its remote, so that every clone of a project is the same tenant; from its path where it has none. */
  readonly tenant_id: string;
}

/** Files that tell what a project is written in. */
const MARKS: readonly (readonly [file: string, type: string])[] = [
  ["Cargo.toml", "rust"],
  ["pyproject.toml", "python"],
  ["setup.py", "python"],
  ["requirements.txt", "python"],
  ["package.json", "javascript"],
  ["go.mod", "go"],
  ["pom.xml", "java"],
  ["build.gradle", "java"],
  ["Gemfile", "ruby"],
  ["composer.json", "php"],
  ["CMakeLists.txt", "c"],
];

export async function describeProject(
  root: string,
  known: { git_remote?: string | undefined; project_type?: string | undefined } = {},
): Promise<Project> {
  const remote = known.git_remote ?? (await gitRemote(root));
  return {
    root,
    type: known.project_type ?? (await projectType(root)),
    git_remote: remote,
    tenant_id: remote === undefined ? shortHash(root) : shortHash(normalRemote(remote)),
  };
}

async function projectType(root: string): Promise<string> {
  const found = await Promise.all(
    MARKS.map(async ([file, type]) => ((await isThere(join(root, file))) ? [type] : [])),
  );
  const types = [...new Set(found.flat())];
  if (types.length === 0) return "unknown";
  return types.length === 1 ? types[0]! : "mixed";
}

/** Of `origin`, or of the first there is. A worktree's `.git` is a file that says where the repository is. */
async function gitRemote(root: string): Promise<string | undefined> {
  const config = (await read(join(root, ".git", "config"))) ?? (await worktreeConfig(root));
  if (config === undefined) return undefined;
  const remotes = [...config.matchAll(/^\[remote "([^"]+)"\]\n((?:[ \t]+.*\n?|[ \t]*\n)*)/gm)].map(
    ([, name, body]) => ({ name, url: /^[ \t]+url[ \t]*=[ \t]*(\S+)/m.exec(body ?? "")?.[1] }),
  );
  return (remotes.find(({ name }) => name === "origin") ?? remotes[0])?.url;
}

async function worktreeConfig(root: string): Promise<string | undefined> {
  const folder = /^gitdir:\s*(.+)$/m.exec((await read(join(root, ".git"))) ?? "")?.[1];
  if (folder === undefined) return undefined;
  return read(join(root, folder, "..", "..", "config")).then(
    (config) => config ?? read(join(folder, "..", "..", "config")),
  );
}

/** The same repository, whichever way it was cloned: without user, scheme, `.git` and case of the host. */
export function normalRemote(remote: string): string {
  const [, host, path] =
    /^[a-z+]+:\/\/(?:[^@/]*@)?([^/:]+)(?::\d+)?\/(.*)$/i.exec(remote) ??
    /^(?:[^@/]*@)?([^/:]+):(.*)$/.exec(remote) ??
    [];
  if (host === undefined || path === undefined) return remote;
  return `${host.toLowerCase()}/${path
    .replace(/^\/+/, "")
    .replace(/\/+$/, "")
    .replace(/\.git$/, "")}`;
}

function isThere(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}

function read(path: string): Promise<string | undefined> {
  return readFile(path, "utf8").catch(() => undefined);
}
