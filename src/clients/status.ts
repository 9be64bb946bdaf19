/** Reads from a client's settings file whether the client uses this server. */

import { readFileSync, statSync } from "node:fs";
import { codeOf } from "../errors";
import { SettingsFault } from "./edit";
import { maxBytes, readSettings } from "./formats";
import { type ClientId, clientOf } from "./index";
import type { Surroundings } from "./locate";

export interface ClientStatus {
  /** Undefined if the client has no settings file. */
  file?: string;
  /**
   * `absent`: no file · `elsewhere`: another address, or none · `here`: dragoman's address · `overridden`: dragoman's
   * address, but another setting takes precedence · `unreadable`.
   */
  state: "absent" | "elsewhere" | "here" | "overridden" | "unreadable";
  /** With `here` and `overridden`: other settings that matter, as ends of sentences. */
  caveats?: string[];
  /** Why it cannot be read. */
  fault?: string;
}

/** @param url The server's address, without a trailing slash. */
export function clientStatus(client: ClientId, { url, ...around }: Surroundings & { url: string }): ClientStatus {
  const settings = clientOf(client).file;
  if (!settings) return { state: "absent" };
  const file = settings.locate(around);
  try {
    const found = statSync(file);
    // Reading a pipe would block.
    if (!found.isFile()) return { file, state: "unreadable", fault: "it is not a file" };
    if (found.size > maxBytes) return { file, state: "unreadable", fault: "it is too large for a settings file" };
    const text = new TextDecoder("utf-8", { fatal: true }).decode(readFileSync(file));
    const parsed = readSettings(settings.format, text);
    const isHere = (address: unknown) => leadsTo(address, url);
    const caveats = settings.caveats?.(parsed, isHere) ?? [];
    if (!settings.addresses(parsed, around.env).some(isHere)) return { file, state: "elsewhere" };
    const state = caveats.some(({ overrides }) => overrides) ? "overridden" : "here";
    return { file, state, caveats: caveats.map(({ says }) => says) };
  } catch (thrown) {
    if (codeOf(thrown) === "ENOENT") return { file, state: "absent" };
    return { file, state: "unreadable", fault: faultOf(thrown) };
  }
}

/** Whether an address is the server's: with or without `/v1`, by name or by IP address. */
function leadsTo(address: unknown, url: string): boolean {
  const bare = (text: string) => text.replace(/\/+$/, "").replace(/\/v1$/, "").replace("//localhost:", "//127.0.0.1:");
  return typeof address === "string" && bare(address) === bare(url);
}

function faultOf(thrown: unknown): string {
  if (!(thrown instanceof SettingsFault)) return codeOf(thrown) || "it is not readable text";
  return thrown.line === undefined ? thrown.message : `line ${thrown.line}: ${thrown.message}`;
}
