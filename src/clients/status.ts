/** Reads from a client's settings file whether the client uses this server. */

import { readFileSync, statSync } from "node:fs";
import { codeOf } from "../lib/errors";
import { withoutEnd } from "../lib/without-end";
import type { Destination, Switch } from "./client";
import { type Path, SettingsFault, settingAt } from "./edit";
import { maxBytes, readSettings, type SettingsFormat } from "./formats";
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
  /** With `here` and `overridden`: the keys that it sends to dragoman, and where they are; undefined: it keeps the key elsewhere. */
  keys?: { at: Path; value: string }[];
  /** With `here` and `overridden`: what `connect` would turn on besides. */
  off?: Switch[];
  /** Why it cannot be read. */
  fault?: string;
}

/** @param url The server's address, without a trailing slash. */
export function clientStatus(client: ClientId, { url, ...around }: Surroundings & { url: string }): ClientStatus {
  const settings = clientOf(client).file;
  if (!settings) return { state: "absent" };
  const file = settings.locate(around);
  try {
    const parsed = settingsOf(client, around);
    const isHere = (address: unknown) => leadsTo(address, url);
    const look = { isHere, url, env: around.env };
    const further = settings.beside?.(around, file) ?? [];
    const caveats = [
      ...(settings.caveats?.(parsed, look) ?? []),
      ...further.flatMap(({ path, format, caveats }) => caveats(readBeside(path, format), look)),
    ];
    const ours = settings.destinations(parsed, around.env).filter(({ address }) => isHere(address));
    if (ours.length === 0) return { file, state: "elsewhere" };
    const state = caveats.some(({ overrides }) => overrides) ? "overridden" : "here";
    const off = clientOf(client).switches?.filter((each) => !isOn(each, settingAt(parsed, each.path))) ?? [];
    return { file, state, caveats: caveats.map(({ says }) => says), keys: keysOf(parsed, ours), off };
  } catch (thrown) {
    if (codeOf(thrown) === "ENOENT") return { file, state: "absent" };
    return { file, state: "unreadable", fault: faultOf(thrown) };
  }
}

/** Whether a setting turns a switch on. */
const isOn = ({ value: wanted, isOn }: Switch, value: unknown): boolean =>
  isOn ? isOn(value) : Bun.deepEquals(value, wanted);

/** @throws The system's own error, SettingsFault */
function textOf(file: string): string {
  const found = statSync(file);
  // Reading a pipe would block.
  if (!found.isFile()) throw new SettingsFault("it is not a file");
  if (found.size > maxBytes) throw new SettingsFault("it is too large for a settings file");
  return new TextDecoder("utf-8", { fatal: true }).decode(readFileSync(file));
}

/** What a client's files say now, the second one under its own name. @throws The system's own error, SettingsFault */
function settingsOf(client: ClientId, around: Surroundings): Record<string, unknown> {
  const { format, locate, second } = clientOf(client).file!;
  const own = readSettings(format, textOf(locate(around)));
  if (!second) return own;
  return { ...own, [second.at]: ifThere(() => readSettings(second.format, textOf(second.locate(around)))) };
}

/** The same; `{}` where there is nothing, or nothing that can be read. */
export function presentSettings(client: ClientId, around: Surroundings): Record<string, unknown> {
  try {
    return settingsOf(client, around);
  } catch {
    return {};
  }
}

function ifThere(read: () => Record<string, unknown>): Record<string, unknown> {
  try {
    return read();
  } catch (thrown) {
    if (codeOf(thrown) === "ENOENT") return {};
    throw thrown;
  }
}

/** A further file, which may be another user's and is the client's to read: what cannot be read says nothing. */
function readBeside(path: string, format: SettingsFormat): Record<string, unknown> {
  try {
    return readSettings(format, textOf(path));
  } catch {
    return {};
  }
}

/** Undefined if one of them is kept elsewhere; VS Code leaves a name of its own store in the key's place. */
function keysOf(settings: object, destinations: readonly Destination[]): ClientStatus["keys"] {
  const places = destinations.map(({ keyAt }) => keyAt);
  const unique = new Map(places.map((at) => [JSON.stringify(at), at]));
  const keys = [...unique.values()].flatMap((at) => {
    const value = at && settingAt(settings, at);
    return at && (value === undefined || typeof value === "string") && !String(value).startsWith("${")
      ? [{ at, value: value ?? "" }]
      : [];
  });
  return keys.length === unique.size ? keys : undefined;
}

/** Whether an address is the server's: with or without `/v1`, by name or by IP address. */
function leadsTo(address: unknown, url: string): boolean {
  const bare = (text: string) =>
    withoutEnd(text, "/")
      .replace(/\/v1$/, "")
      // A project's requests have an address of their own.
      .replace(/\/p\/[^/]+$/, "")
      .replace("//localhost:", "//127.0.0.1:");
  return typeof address === "string" && bare(address) === bare(url);
}

function faultOf(thrown: unknown): string {
  if (!(thrown instanceof SettingsFault)) return codeOf(thrown) || "it is not readable text";
  return thrown.line === undefined ? thrown.message : `line ${thrown.line}: ${thrown.message}`;
}
