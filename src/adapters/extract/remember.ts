import { statSync } from "node:fs";

/**
 * Keeps what was made of the files read last, so that a document which is asked for window by window is not parsed
 * again for each. A file is known by what the file system calls it; one that was written to since is another one.
 */
export function rememberByFile<T, How extends readonly unknown[] = []>(
  countMax: number,
  make: (path: string, ...how: How) => Promise<T>,
  drop: (value: T) => void = () => undefined,
): (path: string, ...how: How) => Promise<T> {
  const kept = new Map<string, T>();
  return async (path, ...how) => {
    const { dev, ino, mtimeMs, size } = statSync(path);
    const key = JSON.stringify([dev, ino, mtimeMs, size, how]);
    const known = kept.get(key);
    if (known !== undefined) {
      // Last in the order of the map is the one used last.
      kept.delete(key);
      kept.set(key, known);
      return known;
    }
    while (kept.size >= countMax) {
      const [oldest, value] = kept.entries().next().value!;
      kept.delete(oldest);
      drop(value);
    }
    const made = await make(path, ...how);
    kept.set(key, made);
    return made;
  };
}
