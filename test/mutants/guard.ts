/** A test file that may notice changes, and what is known of it: how long it takes and which lines it runs. */
import { type LineCounts, readLcov } from "../support/lcov";

export class Guard {
  /** The lines that this process ran, or could have run and did not. */
  readonly #lines: LineCounts;
  readonly #ms: number;
  readonly #startsProcesses: boolean;
  readonly #asked = new Map<string, number>();
  readonly #noticed = new Map<string, number>();

  /** `lcov` is the report of a run without any change, `ms` what that run took. */
  constructor(
    readonly test: string,
    lcov: string,
    ms: number,
    startsProcesses: boolean,
  ) {
    this.#ms = ms;
    this.#startsProcesses = startsProcesses;
    this.#lines = readLcov(lcov);
  }

  /** Whether the test can notice a change of this line. What the report leaves out may run in a process that the test starts. */
  mayRun(file: string, line: number): boolean {
    const lines = this.#lines.get(file);
    return lines === undefined ? this.#startsProcesses : lines.get(line) !== 0;
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
