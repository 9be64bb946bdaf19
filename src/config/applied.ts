/**
 * What calls of the admin API have set, for the other processes of one data folder. A key that counts from the next start
 * when a hand edits the file holds at once when a call sets it, in every process: the file alone does not tell which of
 * the two wrote it. Values are kept as keyed digests.
 */
import { createHmac, randomBytes } from "node:crypto";
import { z } from "zod";
import { readPrivate, writePrivate } from "./files";

const schema = z.object({
  /** Of the digests, in hexadecimal. */
  salt: z.string(),
  /** Digest of the config file as a call wrote it last. */
  text: z.string(),
  /** For each member that a call has set: which call that was, and the digest of its value. */
  members: z.record(z.string(), z.object({ call: z.string(), value: z.string() })),
});
type AppliedFile = z.infer<typeof schema>;

/** Bytes; far more than a few digests take. */
const maxBytes = 64 * 1024;

export interface Applied<Member extends string> {
  /** Of these members, those that another process's call has set since this was asked last, and that the config has so. */
  news(config: { [name in Member]: unknown }): Member[];
  /** Whether a call wrote this text of the config file, and no hand has touched it since. */
  isOfCall(text: string): boolean;
  /**
   * Notes a call of this process. Write it before the config: who reads the new config must find it.
   * @param set The members that the call sets.
   * @param text The config file as it will be.
   * @throws The system's own error.
   */
  note(set: readonly Member[], config: { [name in Member]: unknown }, text: string): void;
}

/** @param path The file that holds all this. @param members Those that count from the next start when a hand edits them. */
export function openApplied<Member extends string>(path: string, members: readonly Member[]): Applied<Member> {
  /** The call whose value each member has here. */
  const heard = new Map<Member, string>();

  return {
    news(config) {
      const record = read(path);
      return members.filter((member) => {
        const entry = record?.members[member];
        if (!record || !entry || heard.get(member) === entry.call) return false;
        // The config that it belongs to may be about to come.
        if (entry.value !== digest(record.salt, config[member])) return false;
        heard.set(member, entry.call);
        return true;
      });
    },
    isOfCall(text) {
      const record = read(path);
      return record !== undefined && record.text === digest(record.salt, text);
    },
    note(set, config, text) {
      const { salt, members } = read(path) ?? { salt: randomBytes(16).toString("hex"), members: {} };
      const call = randomBytes(8).toString("hex");
      const entries = set.map((member) => [member, { call, value: digest(salt, config[member]) }] as const);
      const record: AppliedFile = {
        salt,
        text: digest(salt, text),
        members: { ...members, ...Object.fromEntries(entries) },
      };
      writePrivate(path, `${JSON.stringify(record)}\n`);
      for (const member of set) heard.set(member, call);
    },
  };
}

/** Undefined where no call has set anything yet, and for what is no such file: all of the config is then a hand's. */
function read(path: string): AppliedFile | undefined {
  try {
    return schema.safeParse(JSON.parse(readPrivate(path, maxBytes) ?? "null")).data;
  } catch {
    return undefined;
  }
}

const digest = (salt: string, value: unknown): string =>
  createHmac("sha256", salt)
    .update(JSON.stringify(value) ?? "")
    .digest("hex");
