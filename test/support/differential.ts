/** Compares two ways to one result, case by case, and says how much was compared. */
import { expect } from "bun:test";

/** Sizes of chunks, in bytes: each cuts the events of a stream at other places. */
export const chunkSizes = [1, 2, 3, 7, 59] as const;

export class Comparison {
  #compared = 0;
  readonly #skipped: string[] = [];

  /** Expects of one case that both ways have the same result. */
  same(name: string, oneWay: unknown, otherWay: unknown): void {
    this.#compared++;
    expect(oneWay, name).toEqual(otherWay);
  }

  /** Counts a case that cannot be compared. */
  skip(name: string): void {
    this.#skipped.push(name);
  }

  /** Fails where so few cases were compared that the comparison proves little. */
  expectAtLeast(count: number): void {
    const skipped = this.#skipped.length === 0 ? "none" : this.#skipped.join(", ");
    expect(this.#compared, `cases compared; skipped: ${skipped}`).toBeGreaterThanOrEqual(count);
  }
}
