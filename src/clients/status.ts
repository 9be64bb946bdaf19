/** Reads from a client's settings file whether the client uses this server. */

import { readFileSync, statSync } from "node:fs";
import { codeOf } from "../errors";
import { SettingsFault } from "./edit";
import { maxBytes, readSettings } from "./formats";
import { type ClientId, clientOf } from "./index";
import type { Surroundings } from "./locate";

export interface ClientStatus {
  /** Undefined for what has no file of its own. */
  file?: string;
  /**
   * No file; a file that names another address or none; one that names ours; one that names ours, and something that
   * goes before it; one that cannot be read.
   */
  state: "absent" | "elsewhere" | "here" | "overridden" | "unreadable";
  /** What else it says that matters, where it names our address: ends of sentences. */
  caveats?: string[];
  /** Why it cannot be read. */
  fault?: string;
}

/** @param url Where the server listens, without a slash at its end. */
export function clientStatus(client: ClientId, { url, ...around }: Surroundings & { url: string }): ClientStatus {
  const settings = clientOf(client).file;
  if (!settings) return { state: "absent" };
  const file = settings.locate(around);
  try {
    const found = statSync(file);
    // To read a pipe would wait for whoever writes into it.
    if (!found.isFile()) return { file, state: "unreadable", fault: "it is not a file" };
    if (found.size > maxBytes) return { file, state: "unreadable", fault: "it is too large for a settings file" };
    const text = new TextDecoder("utf-8", { fatal: true }).decode(readFileSync(file));
    const said = readSettings(settings.format, text);
    const isHere = (address: unknown) => leadsTo(address, url);
    const caveats = settings.caveats?.(said, isHere) ?? [];
    if (!settings.addresses(said).some(isHere)) return { file, state: "elsewhere" };
    const state = caveats.some(({ overrides }) => overrides) ? "overridden" : "here";
    return { file, state, caveats: caveats.map(({ says }) => says) };
  } catch (thrown) {
    if (codeOf(thrown) === "ENOENT") return { file, state: "absent" };
    return { file, state: "unreadable", fault: faultOf(thrown) };
  }
}

/** With or without `/v1`; a client calls this machine by name or by number. */
function leadsTo(address: unknown, url: string): boolean {
  const bare = (text: string) => text.replace(/\/+$/, "").replace(/\/v1$/, "").replace("//localhost:", "//127.0.0.1:");
  return typeof address === "string" && bare(address) === bare(url);
}

function faultOf(thrown: unknown): string {
  if (!(thrown instanceof SettingsFault)) return codeOf(thrown) || "it is not readable text";
  return thrown.line === undefined ? thrown.message : `line ${thrown.line}: ${thrown.message}`;
}
