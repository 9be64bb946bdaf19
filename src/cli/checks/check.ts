/** The input and the result of a check. A check changes nothing: no sign-in, no file, no paid request. */
import type { Environment } from "../../config/environment";
import type { Config } from "../../config/schema";
import type { Stored } from "../../config/store";
import type { Logger } from "../../lib/logger";

export interface Finding {
  /** The name of what was checked, such as `data folder`. */
  name: string;
  state: "ok" | "warn" | "fail";
  /** What was found, in a sentence. */
  message: string;
  /** How to fix it, in a sentence. */
  todo?: string;
  /** Names of people and machines in it, which a report must not have. */
  privateNames?: readonly string[];
}

export interface CheckContext {
  version: string;
  environment: Environment;
  /** All environment variables. */
  env: Record<string, string | undefined>;
  /** The home folder. */
  home: string;
  /** The port that `start` would take. */
  port: number;
  /** The enterprise's GitHub host, if one is given. */
  enterpriseHost?: string;
  /** The config file's content; undefined if there is none, or if it cannot be read, which `checkConfig` reports. */
  stored: Stored | undefined;
  /** The config, with defaults; undefined if the file cannot be read. */
  config: Config | undefined;
  /** Collects secrets to conceal, and logs nothing. */
  logger: Logger;
}

export type Check = (subject: CheckContext) => Finding[] | Promise<Finding[]>;

/** Makes the findings about one thing. */
export const about = (name: string) => ({
  ok: (message: string): Finding => ({ name, state: "ok", message }),
  warn: (message: string, todo?: string): Finding => ({ name, state: "warn", message, todo }),
  fail: (message: string, todo?: string): Finding => ({ name, state: "fail", message, todo }),
});
