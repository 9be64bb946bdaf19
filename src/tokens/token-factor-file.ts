/** Keeps the learnt token factors across restarts: model ids and numbers, never content. Several processes may share the file. */
import { renameSync, statSync } from "node:fs";
import { z } from "zod";
import { readPrivate, writePrivate } from "../config/files";
import { lazy } from "../lazy";
import type { Logger } from "../logger";
import { factorBounds, type TokenFactor } from "./token-factor";

/** Factors by model id. */
export type TokenFactors = Map<string, TokenFactor>;

/** The most models that are remembered: a provider of made-up names must not fill the file. */
const maxFactors = 300;
const maxBytes = 256 * 1024;

const within = ([least, most]: readonly [number, number]) => z.number().min(least).max(most);
const schema = lazy(() => {
  const variance = z.number().min(0).max(1);
  return z.object({
    models: z.record(
      z.string().max(256),
      z.object({
        texts: within(factorBounds.texts),
        tools: within(factorBounds.tools),
        variance: z.tuple([variance, z.number().min(-1).max(1), variance]),
        exchanges: z.int().min(1).max(1e9),
        error: z.number().min(0).max(1),
        updatedAtMs: z.int().min(0),
      }),
    ),
  });
});

/** The factors of the file; none where there is no file, or it cannot be read: they are learnt again. */
function readFactors(path: string): TokenFactors {
  try {
    return new Map(Object.entries(schema().parse(JSON.parse(readPrivate(path, maxBytes) ?? '{"models":{}}')).models));
  } catch {
    return new Map();
  }
}

/**
 * Adds what other processes have learnt: of each model, the factor that more exchanges have taught counts. The models
 * that were seen last are kept.
 */
export function mergeFactors(factors: TokenFactors, path: string): void {
  for (const [model, factor] of readFactors(path)) {
    const ours = factors.get(model);
    if (!ours || factor.exchanges > ours.exchanges) factors.set(model, factor);
  }
  const oldest = [...factors].sort(([, a], [, b]) => a.updatedAtMs - b.updatedAtMs);
  for (const [model] of oldest.slice(0, Math.max(0, factors.size - maxFactors))) factors.delete(model);
}

const textOf = (factors: TokenFactors): string => `${JSON.stringify({ models: Object.fromEntries(factors) })}\n`;

/** Which save of whichever process the file is. */
function saveAt(path: string): string | undefined {
  const stats = statSync(path, { throwIfNoEntry: false, bigint: true });
  return stats && `${stats.ino} ${stats.mtimeNs}`;
}

/**
 * Merges the factors with those of the file, and replaces it as a whole, without waiting for the disk. What another process saves
 * meanwhile is merged too.
 * @param isOld Whether newer factors were saved meanwhile by this process, so that the file stays. @throws The system's own error.
 */
export async function saveFactors(path: string, factors: TokenFactors, isOld = () => false): Promise<void> {
  // `removeLeftovers` knows the name, should the process end here.
  const { open, rm } = await import("node:fs/promises");
  const temporary = `${path}.tmp-${process.pid}-${crypto.getRandomValues(Buffer.alloc(6)).toString("hex")}`;
  try {
    for (let merged: string | undefined; ; ) {
      merged = saveAt(path);
      mergeFactors(factors, path);
      const file = await open(temporary, "w", 0o600);
      try {
        await file.writeFile(textOf(factors));
        await file.sync();
      } finally {
        await file.close();
      }
      // Between the questions and a rename on another thread, newer ones could be saved.
      if (isOld()) return await rm(temporary);
      if (saveAt(path) === merged) return renameSync(temporary, path);
    }
  } catch (thrown) {
    await rm(temporary, { force: true });
    throw thrown;
  }
}

/** The same before the process ends. @throws The system's own error. */
export function saveFactorsNow(path: string, factors: TokenFactors): void {
  let merged: string | undefined;
  do {
    merged = saveAt(path);
    mergeFactors(factors, path);
  } while (!writePrivate(path, textOf(factors), () => saveAt(path) === merged));
}

/** Milliseconds. */
const saveAfter = 2_000;
const saveEvery = 60_000;

interface FactorFileOptions {
  path: string;
  logger: Pick<Logger, "warn">;
  /** A monotonic clock, ms. */
  monotonic(): number;
}

/** Reads the factors, and writes them a moment after a change and then at most once a minute. */
export class FactorFile {
  readonly #factors: TokenFactors;
  readonly #options: FactorFileOptions;
  #timer: Timer | undefined;
  #writtenAt = Number.NEGATIVE_INFINITY;
  #isChanged = false;
  #isSaving = false;
  #hasFailed = false;
  #isClosed = false;
  /** The last factors are in the file. */
  #hasLast = false;

  constructor(factors: TokenFactors, options: FactorFileOptions) {
    this.#factors = factors;
    this.#options = options;
    mergeFactors(factors, options.path);
  }

  changed(): void {
    this.#isChanged = true;
    if (!this.#isClosed) this.#schedule();
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    // The process may end before what is being saved is there.
    if (!this.#isChanged && !this.#isSaving) return;
    this.#isChanged = false;
    const { path } = this.#options;
    try {
      saveFactorsNow(path, this.#factors);
      this.#hasLast = true;
    } catch (thrown) {
      this.#failed(thrown);
    }
  }

  #schedule(): void {
    const due = this.#writtenAt + saveEvery - this.#options.monotonic();
    this.#timer ??= setTimeout(() => void this.#save(), Math.max(saveAfter, due));
    this.#timer.unref();
  }

  async #save(): Promise<void> {
    const { path, monotonic } = this.#options;
    this.#isChanged = false;
    this.#writtenAt = monotonic();
    this.#isSaving = true;
    await saveFactors(path, this.#factors, () => this.#hasLast).catch((thrown) => this.#failed(thrown));
    this.#isSaving = false;
    this.#timer = undefined;
    if (this.#isChanged && !this.#isClosed) this.#schedule();
  }

  #failed(thrown: unknown): void {
    if (!this.#hasFailed)
      this.#options.logger.warn(
        "The learnt token factors cannot be saved; they are learnt again after a restart.",
        thrown,
      );
    this.#hasFailed = true;
  }
}
