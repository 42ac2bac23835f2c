import type { Figure } from "./figures.ts";
import { progress } from "./progress.ts";

/** A folder on a real disk, and how much is measured. */
export interface Setting {
  readonly folder: string;
  readonly isQuick: boolean;
}

/** Measures that share a scene. */
export interface Suite {
  /** In the order they run; the names are what `--only` takes. */
  readonly measures: readonly string[];
  /** What a reader of the table has to know. */
  readonly remark: string;
  run(setting: Setting, only?: string): Promise<Figure[]>;
}

export function defineSuite<Scene>(options: {
  readonly measures: Readonly<Record<string, (scene: Scene) => Promise<Figure[]>>>;
  readonly remark: string;
  /** Opens what the measures need, and closes it after them. */
  readonly withScene: (setting: Setting, work: (scene: Scene) => Promise<Figure[]>) => Promise<Figure[]>;
}): Suite {
  return {
    measures: Object.keys(options.measures),
    remark: options.remark,
    run: (setting, only) =>
      options.withScene(setting, async (scene) => {
        const figures: Figure[] = [];
        for (const [name, measure] of Object.entries(options.measures)) {
          if (only !== undefined && only !== name) continue;
          progress(`${name}:`);
          figures.push(...(await measure(scene)));
        }
        return figures;
      }),
  };
}
