/**
 * Property: two processes that share a config file follow a plain model: patches, edits by hand, revisions, and a file
 * that is not valid.
 */
import { expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type ConfigStore, openConfig, type Stored } from "../../src/config/store";
import { asProxyError } from "../../src/lib/errors";
import fc from "../support/random";
import { temporaryFolder } from "../support/temporary-folder";

const defaults = { logLevel: "info", retentionDays: 14, neverOverage: false };
const effective = (stored: Stored) => ({ ...defaults, ...stored });

/** What a process knows of the file. */
interface Known {
  text: string;
  stored: Stored;
  hasFault: boolean;
}
interface Model {
  text: string;
  /** Undefined if the file is not valid. */
  stored: Stored | undefined;
  processes: Known[];
}
interface Real {
  path: string;
  stores: ConfigStore[];
}
type Command = fc.AsyncCommand<Model, Real>;

/** After each step, the file and both processes are as the model says. */
const command = (name: string, run: (model: Model, real: Real) => Promise<void> | void): Command => ({
  check: () => true,
  toString: () => name,
  async run(model, real) {
    await run(model, real);
    expect(readFileSync(real.path, "utf8"), "the file").toBe(model.text);
    for (const [at, { stored, hasFault }] of model.processes.entries()) {
      const store = real.stores[at]!;
      expect(store.stored, `what process ${at} knows of the file`).toEqual(stored);
      expect(store.current, `what holds in process ${at}`).toMatchObject(effective(stored));
      expect(store.fault !== undefined, `process ${at} tells that the file is wrong`).toBe(hasFault);
    }
  },
});

/** @param isFor Whether the change is for the revision that the process has read. */
const change = (at: number, patch: Stored, isFor: boolean) =>
  command(
    `process ${at} sets ${JSON.stringify(patch)}${isFor ? " for its revision" : ""}`,
    async (model, { stores, path }) => {
      const [known, store] = [model.processes[at]!, stores[at]!];
      const given = store.change(patch, isFor ? { revision: store.revision } : {});
      const answer = await given.then(
        () => "done",
        (thrown) => asProxyError(thrown).kind,
      );
      const isOutdated = isFor && known.text !== model.text;
      const isInvalid = patch.retentionDays === -1;
      if (!model.stored || isOutdated) return expect(answer).toBe("conflict");
      if (isInvalid) return expect(answer).toBe("invalid_request");
      expect(answer).toBe("done");
      const before = model.stored;
      const next: Record<string, unknown> = { ...before };
      for (const [name, value] of Object.entries(patch) as [keyof typeof defaults, unknown][]) {
        // What holds already stays as the owner wrote it.
        if (effective(before)[name] === (value ?? defaults[name])) continue;
        if (value === null) delete next[name];
        else next[name] = value;
      }
      if (!Bun.deepEquals(next, before)) {
        model.text = readFileSync(path, "utf8");
        expect(JSON.parse(model.text), "what was written").toEqual(next);
      }
      model.stored = next;
      Object.assign(known, { text: model.text, stored: next, hasFault: false });
    },
  );

let edits = 0;
const edit = (stored: Stored | undefined) =>
  command(`edit the file: ${JSON.stringify(stored)}`, (model, { path }) => {
    // Two edits in the same moment differ in length.
    const text = `${stored ? JSON.stringify(stored) : "{ not JSON"}${" ".repeat(edits++ % 1_000)}`;
    writeFileSync(path, text);
    Object.assign(model, { text, stored });
  });

const putBack = command("put back what process 0 has read last", (model, { path }) => {
  const { text, stored } = model.processes[0]!;
  writeFileSync(path, text);
  Object.assign(model, { text, stored });
});

const look = (at: number) =>
  command(`process ${at} looks at the file`, async ({ text, stored, processes }, { stores }) => {
    await stores[at]!.reload();
    Object.assign(processes[at]!, stored ? { text, stored, hasFault: false } : { hasFault: true });
  });

test("a patch, an edit and a look each leave the file and both processes as a plain model says", async () => {
  const folder = temporaryFolder();
  let count = 0;
  const setup = () => {
    const path = join(folder, `${count++}.json`);
    writeFileSync(path, "{}");
    const known = () => ({ text: "{}", stored: {}, hasFault: false });
    return {
      model: { text: "{}", stored: {}, processes: [known(), known()] },
      real: { path, stores: [openConfig(path), openConfig(path)] },
    };
  };
  const members = {
    logLevel: fc.constantFrom("info", "debug"),
    retentionDays: fc.constantFrom(14, 7),
    neverOverage: fc.boolean(),
  };
  const stored = fc.record(members, { requiredKeys: [] });
  const patch = fc.record(
    {
      logLevel: fc.option(members.logLevel),
      retentionDays: fc.option(fc.constantFrom(14, 7, 7, 7, -1)),
      neverOverage: fc.option(fc.boolean()),
    },
    { requiredKeys: [] },
  );
  const commands = [
    fc.tuple(fc.nat(1), patch, fc.boolean()).map((given) => change(...given)),
    fc.option(stored, { nil: undefined, freq: 3 }).map(edit),
    fc.constant(putBack),
    fc.constant(putBack),
    fc.nat(1).map(look),
    fc.nat(1).map(look),
  ];
  await fc.assert(
    fc.asyncProperty(fc.commands(commands, { maxCommands: 40, size: "+1" }), (steps) => fc.asyncModelRun(setup, steps)),
    { numRuns: 60 },
  );
});
