/**
 * Records which config values the admin API has set, for the other processes of the data folder. Some keys take effect only
 * at start if the file is edited by hand, but at once, in every process, if the API sets them. The config file alone does not
 * show who wrote it. Values are stored as keyed digests.
 */
import { z } from "zod";
import { lazy } from "../lazy";
import { readPrivate, writePrivate } from "./files";

const schema = lazy(() =>
  z.object({
    /** Of the digests, in hexadecimal. */
    salt: z.string(),
    /** Digest of the config file as the API last wrote it. */
    text: z.string(),
    /** For each member set by the API: the id of the call, and the digest of the value. */
    members: z.record(z.string(), z.object({ call: z.string(), value: z.string() })),
  }),
);
type AppliedFile = z.infer<ReturnType<typeof schema>>;

/** Bytes; far more than a few digests take. */
const maxBytes = 64 * 1024;

export interface Applied<Member extends string> {
  /** The members that a call in another process has set since the last `news`, if the config has that value. */
  news(config: { [name in Member]: unknown }): Member[];
  /** Whether the API wrote this text of the config file, and nobody has edited it since. */
  isOfCall(text: string): boolean;
  /**
   * Records a call of this process. It must be written before the config, as whoever reads the new config needs it.
   * @param set The members that the call sets.
   * @param text The config file as it will be.
   * @throws The system's own error.
   */
  note(set: readonly Member[], config: { [name in Member]: unknown }, text: string): void;
}

/** @param path The file of this record. @param members Those that take effect only at start when edited by hand. */
export function openApplied<Member extends string>(path: string, members: () => readonly Member[]): Applied<Member> {
  /** The call whose value each member has in this process. */
  const appliedCalls = new Map<Member, string>();

  return {
    news(config) {
      const record = read(path);
      if (!record) return [];
      return members().filter((member) => {
        const entry = record.members[member];
        if (!entry || appliedCalls.get(member) === entry.call) return false;
        // The config of that call may not be written yet.
        if (entry.value !== digest(record.salt, config[member])) return false;
        appliedCalls.set(member, entry.call);
        return true;
      });
    },
    isOfCall(text) {
      const record = read(path);
      return record !== undefined && record.text === digest(record.salt, text);
    },
    note(set, config, text) {
      const { salt, members } = read(path) ?? {
        salt: crypto.getRandomValues(Buffer.alloc(16)).toString("hex"),
        members: {},
      };
      const call = crypto.getRandomValues(Buffer.alloc(8)).toString("hex");
      const entries = set.map((member) => [member, { call, value: digest(salt, config[member]) }] as const);
      const record: AppliedFile = {
        salt,
        text: digest(salt, text),
        members: { ...members, ...Object.fromEntries(entries) },
      };
      writePrivate(path, `${JSON.stringify(record)}\n`);
      for (const member of set) appliedCalls.set(member, call);
    },
  };
}

/** Undefined if there is no valid record: then all of the config counts as edited by hand. */
function read(path: string): AppliedFile | undefined {
  try {
    return schema().safeParse(JSON.parse(readPrivate(path, maxBytes) ?? "null")).data;
  } catch {
    return undefined;
  }
}

const digest = (salt: string, value: unknown): string =>
  new Bun.CryptoHasher("sha256", salt).update(JSON.stringify(value) ?? "").digest("hex");
