/** A test file that may notice changes, and what is known of it: how long it takes and which lines it runs. */

export class Guard {
  /** By the file the lines that this process ran, or could have run and did not. */
  readonly #lines: ReadonlyMap<string, ReadonlyMap<number, boolean>>;
  readonly #ms: number;
  readonly #asked = new Map<string, number>();
  readonly #noticed = new Map<string, number>();

  /** `lcov` is the report of a run without any change, `ms` what that run took. */
  constructor(
    readonly test: string,
    lcov: string,
    ms: number,
  ) {
    this.#ms = ms;
    this.#lines = new Map(lcov.split("end_of_record").flatMap(linesOf));
  }

  /** Whether the test can notice a change of this line. A line that the report leaves out may run, also in another process. */
  mayRun(file: string, line: number): boolean {
    return this.#lines.get(file)?.get(line) ?? true;
  }

  /** How many changes of the file the test is expected to notice in a millisecond, by those that it was asked about. */
  worth(file: string): number {
    const expected = this.#lines.has(file) ? 1 : 0.1;
    return ((this.#noticed.get(file) ?? 0) + expected) / ((this.#asked.get(file) ?? 0) + 1) / this.#ms;
  }

  answered(file: string, hasNoticed: boolean): void {
    this.#asked.set(file, (this.#asked.get(file) ?? 0) + 1);
    if (hasNoticed) this.#noticed.set(file, (this.#noticed.get(file) ?? 0) + 1);
  }
}

function linesOf(record: string): [string, Map<number, boolean>][] {
  const file = /^SF:(.+)$/m.exec(record)?.[1];
  if (file === undefined) return [];
  const lines = [...record.matchAll(/^DA:(\d+),(\d+)/gm)].map(
    ([, line, times]) => [Number(line), times !== "0"] as const,
  );
  return [[file, new Map(lines)]];
}
