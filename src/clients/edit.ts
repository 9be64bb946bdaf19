/** A change of a client's settings, as a path and a value, whatever the format. */

export type Path = readonly (string | { name: string })[];

export interface Edit {
  path: Path;
  /** Replaces the whole value; undefined removes it. */
  value: unknown;
  /** Applied only if there is no value yet. */
  unlessSet?: boolean;
}

/** The text is not a valid settings file of its format. */
export class SettingsFault extends Error {
  constructor(
    message: string,
    /** From 1; undefined if unknown. */
    readonly line?: number,
  ) {
    super(message);
  }
}
