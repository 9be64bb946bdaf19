/** What the reader's worker does, and the messages about it. */
import type { Database } from "bun:sqlite";
import type { Dimension } from "./dimensions";
import type { Filters } from "./filters";
import { pageOf } from "./page";
import { type PortionFilters, portionSums } from "./portions";
import { type PromptOrder, promptsOf } from "./prompts";
import { addUp, atOneMoment, nextPeriods, removeForgotten } from "./sqlite-rollup";
import { largestSessionsOf, statisticsOf } from "./statistics";

export const readerTasks = {
  statistics: (database: Database, filters: Filters, by: Dimension[]) =>
    atOneMoment(database, (source) => statisticsOf(source, filters, by)),
  largestSessions: (database: Database, filters: Filters, count: number) =>
    atOneMoment(database, (source) => largestSessionsOf(source, filters, count)),
  page: (database: Database, filters: Filters, limit: number, cursor?: number) =>
    atOneMoment(database, (source) => pageOf(source, "each.*", filters, limit, cursor)),
  prompts: (database: Database, filters: Filters, limit: number, cursor?: number, order?: PromptOrder) =>
    atOneMoment(database, (source) => promptsOf(source, filters, limit, cursor, order)),
  portions: (database: Database, filters: PortionFilters) =>
    atOneMoment(database, (source) => portionSums(source, filters)),
  /** Adds up the hours that are over, and then the days. */
  async addUp(database: Database, now: number) {
    removeForgotten(database);
    // Hours that change meanwhile are left for the next time.
    for (let round = 0; round < 2; round += 1) {
      const { length, hours } = await nextPeriods(database, now);
      for (const hour of hours) await addUp(database, hour, length);
    }
  },
};

export type ReaderTasks = typeof readerTasks;
type Tail<Values> = Values extends [unknown, ...infer Rest] ? Rest : never;
export type Input<Name extends keyof ReaderTasks> = Tail<Parameters<ReaderTasks[Name]>>;
export type Output<Name extends keyof ReaderTasks> = ReturnType<ReaderTasks[Name]>;

/** @param identity Of the file at the path: one that replaced another is opened anew. */
export interface ReaderQuestion {
  id: number;
  path: string;
  identity: string;
  task: keyof ReaderTasks;
  input: unknown[];
}

/**
 * An answer is JSON: it costs the server that asked less than a copy of the objects. Of a long list it comes in parts, so
 * that each is read in a turn of its own.
 */
export type ReaderAnswer = { id: number } & (
  | { more: string }
  | { value: string }
  | { failure: string; code: string | undefined }
);
