/** Client keys that are kept on this machine for tools that ask for theirs, so that none is in a tool's own file. */
import { z } from "zod";
import { ensurePrivateFolder, readPrivate, removeFile, writePrivate } from "../config/files";
import { inHome } from "../config/home-names";
import { parseJson } from "../lib/json";
import { print, say } from "./terminal";
import { UsageError } from "./usage-error";

interface Place {
  /** The data folder. */
  home: string;
}

export const keptKeysFile = ({ home }: Place): string => inHome(home, "keptKeys");

/** By the name of the key. */
const kept = (place: Place): Record<string, string> =>
  z.record(z.string(), z.string()).parse(parseJson(readPrivate(keptKeysFile(place), 65_536) ?? "{}"));

/** Keeps a key in a file of the data folder that only this person can read. @returns What keeps the one before again. */
export function keepKey(place: Place, name: string, key: string): () => void {
  ensurePrivateFolder(place.home, say);
  const all = kept(place);
  writePrivate(keptKeysFile(place), `${JSON.stringify({ ...all, [name]: key })}\n`);
  const before = all[name];
  return () => (before === undefined ? forgetKept(place, name) : void keepKey(place, name, before));
}

export function forgetKept(place: Place, name: string): void {
  const { [name]: gone, ...others } = kept(place);
  if (gone === undefined) return;
  if (Object.keys(others).length === 0) removeFile(keptKeysFile(place));
  else writePrivate(keptKeysFile(place), `${JSON.stringify(others)}\n`);
}

/** Prints the key, and nothing else, on stdout. @throws UsageError if none of that name is kept */
export function printKept(place: Place, name: string): number {
  const key = kept(place)[name];
  if (key === undefined)
    throw new UsageError(
      `No key ${name} is kept on this machine. \`dragoman connect claude-code --write --key-helper\` makes one for Claude Code and keeps it.`,
    );
  print(key);
  return 0;
}
