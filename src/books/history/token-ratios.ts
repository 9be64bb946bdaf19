/** What was learnt of how models count tokens: model ids and numbers. It is kept beside the requests that taught it. */
import type { Database } from "bun:sqlite";

export interface KeptRatio {
  model: string;
  ratio: number;
  requests: number;
}

/** The most models that are remembered: a provider of made-up names must not fill the table. */
export const maxRatios = 300;

export function prepareTokenRatios(database: Database): void {
  database.run(
    "CREATE TABLE IF NOT EXISTS token_ratios (model TEXT PRIMARY KEY, ratio REAL NOT NULL, requests INTEGER NOT NULL, learnt_at_ms INTEGER NOT NULL)",
  );
}

export const readTokenRatios = (database: Database): KeptRatio[] =>
  database.query<KeptRatio, []>("SELECT model, ratio, requests FROM token_ratios ORDER BY learnt_at_ms").all();

/** The models that were learnt last are kept. @param now Unix ms. */
export function keepTokenRatio(database: Database, { model, ratio, requests }: KeptRatio, now: number): void {
  database.run("INSERT OR REPLACE INTO token_ratios VALUES (?, ?, ?, ?)", [model, ratio, requests, now]);
  database.run(
    `DELETE FROM token_ratios WHERE model NOT IN (SELECT model FROM token_ratios ORDER BY learnt_at_ms DESC LIMIT ${maxRatios})`,
  );
}
