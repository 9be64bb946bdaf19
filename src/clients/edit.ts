/** A change of a client's settings, as a path and a value, whatever the format. */

export type Path = readonly (string | { name: string })[];

export interface Edit {
  path: Path;
  /** Replaces what stands there, whole; undefined takes it away. */
  value: unknown;
  /** Counts only where nothing stands there. */
  unlessSet?: boolean;
}

/** A text that is no settings file of its format. */
export class SettingsFault extends Error {
  constructor(
    message: string,
    /** From 1, where it is known. */
    readonly line?: number,
  ) {
    super(message);
  }
}
