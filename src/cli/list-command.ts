/** Commands that print what the running server answers: a question, the answer's shape, and the lines of it. */
import type { z } from "zod";
import type { Environment } from "../config/environment";
import { demoNotice, type RunningServer, readAs, requireServer } from "./running-server";
import type { Said } from "./server-routes";
import { print, printJson, say } from "./terminal";

export interface ListOptions {
  environment: Environment;
  json: boolean;
}

interface List<Answer> {
  asks(server: RunningServer): Promise<Said<Answer>>;
  /** Of the answer; with `json` all of it is printed. */
  shape: z.ZodType<Answer>;
  /** Printed on stdout. */
  lines(answer: Answer): string[];
  /** Said after them, on stderr. */
  notes?(answer: Answer): string[];
}

/** @returns The exit code. */
export async function listCommand<Answer>({ environment, json }: ListOptions, list: List<Answer>): Promise<number> {
  const server = requireServer(environment);
  const answer = await list.asks(server);
  const read = readAs(list.shape, answer, server);
  if (json) {
    printJson(answer);
    return 0;
  }
  if (server.demo) say(demoNotice, "");
  print(...list.lines(read));
  say(...(list.notes?.(read) ?? []));
  return 0;
}
