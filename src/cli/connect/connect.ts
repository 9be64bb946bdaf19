/** `dragoman connect`: a client's settings for the server that runs, to read, to write into its file, or to take back. */
import { homedir } from "node:os";
import type { ClientSetup } from "../../clients/client";
import { type ClientId, clientIds, clientOf, freshFile, isClientId } from "../../clients/index";
import { unifiedDiff } from "../../clients/settings-file/diff";
import { undoSettings } from "../../clients/settings-file/undo";
import { type SettingsFile, writeSettings } from "../../clients/settings-file/write";
import { isShell, type Shell, setVariables, shellNames, shells, usualShell } from "../../clients/shells";
import { clientStatus } from "../../clients/status";
import type { Environment } from "../../config/environment";
import { ProxyError } from "../../errors";
import { demoNotice, findServer, type RunningServer, requireServer } from "../running-server";
import { table } from "../table";
import { print, say, shortened } from "../terminal";
import { UsageError } from "../usage-error";
import { modelsOf, type Offer, pick } from "./models";
import { freeModel, probe, probeCost } from "./probe";
import { maskSecrets } from "./redact";

/** As the command line has them. */
export interface ConnectFlags {
  print?: boolean;
  write?: boolean;
  undo?: boolean;
  force?: boolean;
  test?: boolean;
}

interface ConnectOptions {
  environment: Environment;
  client: ClientId;
  /** A model's id, in any spelling that a request may use. */
  model?: string;
  shell: Shell;
  /** Make one call, also with a model that costs something. */
  test: boolean;
  force: boolean;
}

interface Asked extends ConnectFlags {
  environment: Environment;
  client?: string;
  model?: string;
  shell?: string;
}

/** @throws UsageError for what does not go together, or is no client or shell. */
export async function connectFrom(asked: Asked): Promise<number> {
  const { environment, client, model, shell, test = false, force = false } = asked;
  const actions = (["print", "write", "undo"] as const).filter((action) => asked[action]);
  if (actions.length > 1) throw new UsageError(`--${actions.join(" and --")} do not go together.`);
  const [action = "print"] = actions;
  if (force && action !== "undo") throw new UsageError("--force goes with --undo.");
  if (client === undefined) {
    if (actions.length > 0) throw new UsageError(`Say which client: ${clientIds.join(", ")}.`);
    return listClients(environment);
  }
  if (!isClientId(client))
    throw new UsageError(`There is no client \`${client}\` here; there are ${clientIds.join(", ")}.`);
  if (shell !== undefined && !isShell(shell)) throw new UsageError(`--shell must be one of: ${shellNames.join(", ")}.`);
  const options = { environment, client, model, test, force, shell: shell ?? usualShell(process.env) };
  return action === "undo" ? undo(options) : point(options, action);
}

/** All of them, with what their files say now. */
function listClients(environment: Environment): number {
  const url = findServer(environment)?.url ?? "http://127.0.0.1:4141";
  const rows = clientIds.map((id) => {
    const { file, state } = clientStatus(id, { ...person(), url });
    return [id, clientOf(id).name, file ? shortened(file) : "–", file ? states[state] : "settings are printed only"];
  });
  print(...table([["client", "name", "its own file", "now"], ...rows]));
  say("", "`dragoman connect <client>` prints its settings, --write puts them into its file, --undo takes them back.");
  return 0;
}

const states = {
  absent: "no file yet",
  elsewhere: "not pointed here",
  here: "pointed here",
  overridden: "pointed here, but something else in it goes before",
  unreadable: "does not read",
};

async function point(options: ConnectOptions, action: "print" | "write"): Promise<number> {
  const client = clientOf(options.client);
  const server = requireServer(options.environment);
  if (server.demo) say(demoNotice, "");
  const models = await modelsOf(server);
  sayRotation(server);
  const model = options.model === undefined ? undefined : pick(options.model, models.offered);
  const setup = client.setUp({ url: server.url, key: server.keys[0]?.value, models: models.choice, model });
  if (action === "print" || !client.file) {
    printSetup(options, setup, server);
    if (action === "write")
      throw new UsageError(`${client.name} has no file of its own to write: the lines above are to be set by hand.`);
    return options.test ? test(options, server, setup, models) : 0;
  }
  await write(options, setup, server);
  const code = await test(options, server, setup, models);
  sayWhatIsLeft(options, setup, server);
  return code;
}

/** The set-up has the key that holds now. */
function sayRotation({ keys: [taken, ...others] }: RunningServer): void {
  if (taken?.from !== "DRAGOMAN_API_KEY" || !others.some(({ from }) => from === "config.json")) return;
  say(
    "The server still takes the key of DRAGOMAN_API_KEY, not the one in config.json, which counts from the next start: connect again then.",
    "",
  );
}

function printSetup({ client: id, shell }: ConnectOptions, setup: ClientSetup, server: RunningServer): void {
  const client = clientOf(id);
  const lines = [`${client.name} → ${server.url}${server.demo ? " (DEMO)" : ""}, model ${setup.model.id}`, ""];
  if (client.file) {
    const place = shortened(client.file.locate(person()));
    lines.push(`In ${place} (\`dragoman connect ${id} --write\` puts it there, \`--undo\` takes it back):`);
    lines.push("", freshFile(client, setup));
  }
  const variables = setVariables(setup.variables, shell);
  if (variables !== "") {
    const instead = client.file && notInFile(setup).length === 0 ? "Or in" : "In";
    lines.push(`${instead} the environment (${shells[shell].name}; for others --shell):`, "", variables, "");
  }
  const programs = setup.programs.filter((program) => program.shell === undefined || program.shell === shell);
  for (const { name, text } of programs.length > 0 ? programs : setup.programs.slice(0, 1))
    lines.push(`${name}:`, "", text, "");
  if (setup.note) lines.push(setup.note);
  if (setup.command) lines.push(`Then run: ${setup.command}`);
  print(lines.join("\n").trimEnd());
}

/** Variables that the file cannot stand in for. */
function notInFile({ variables, edits }: ClientSetup): string[] {
  const names = new Set(edits.map(({ path }) => path.at(-1)));
  return Object.keys(variables).filter((name) => !names.has(name));
}

async function write(
  { client: id, environment }: ConnectOptions,
  setup: ClientSetup,
  server: RunningServer,
): Promise<void> {
  const { file, before, after, kept, open } = await writeSettings(placeOf(id, environment), setup.edits);
  if (before === after) say(`${shortened(file)} says all of it already; nothing was changed.`);
  const key = server.keys[0]?.value;
  const secrets = server.keys.map(({ value }) => value);
  for (const line of unifiedDiff(before, after, shortened(file))) print(maskSecrets(line, secrets));
  if (open && key !== undefined && JSON.stringify(setup.edits).includes(JSON.stringify(key)))
    say(
      `Others on this machine can read ${shortened(file)}, and the client key stands in it now. Run: chmod 600 ${JSON.stringify(file)}`,
    );
  const kind = before === "" ? "takes this away again" : "puts back what it was before";
  if (kept) say(`\`dragoman connect ${id} --undo\` ${kind}.`);
}

/** After the file is written: what else it says, what it cannot hold, and what to run. */
function sayWhatIsLeft({ client: id }: ConnectOptions, setup: ClientSetup, { url }: RunningServer): void {
  const { file = "", caveats = [] } = clientStatus(id, { ...person(), url });
  for (const caveat of caveats) say(`${shortened(file)} leads here now, but ${caveat}.`);
  const missing = notInFile(setup);
  if (setup.note && missing.length > 0)
    say(setup.note, `\`dragoman connect ${id}\` prints the line that sets ${missing.join(", ")}.`);
  if (setup.command) say(`Then run: ${setup.command}`);
}

async function undo({ client: id, environment, force }: ConnectOptions): Promise<number> {
  const { name, file } = clientOf(id);
  if (!file) throw new UsageError(`${name} has no file of its own, so there is nothing to take back.`);
  const undone = await undoSettings(placeOf(id, environment), force);
  if (!undone) {
    say(`Nothing to take back: dragoman has written nothing into ${name}'s settings.`);
    return 0;
  }
  const path = shortened(undone.file);
  say(
    {
      restored: `${path} is again what it was before dragoman wrote into it.`,
      "taken out": `What dragoman wrote into ${path} is taken out; what was changed there since stays.`,
      removed: `${path} is removed: there was none before dragoman made it.`,
      "as it was": `${path} is what it was before dragoman wrote into it.`,
    }[undone.state],
  );
  if (undone.kept) say(`The changed one is kept in ${shortened(undone.kept)}.`);
  return 0;
}

async function test(
  { client: id, test: asked }: ConnectOptions,
  server: RunningServer,
  setup: ClientSetup,
  { offered, choice }: Offer,
): Promise<number> {
  const { dialect } = clientOf(id);
  const model = freeModel(dialect, setup.model, [...choice.all, ...offered]) ?? (asked ? setup.model : undefined);
  if (!model) {
    say(
      `Not tried: no model is free of charge. \`dragoman connect ${id} --test\` tries ${setup.model.id}; ${probeCost(setup.model)}.`,
    );
    return 0;
  }
  say(`One small call in the client's own dialect (${dialect}), with ${model.id}; ${probeCost(model)}.`);
  try {
    const { took, said } = await probe(server, dialect, model);
    say(`Answered in ${(took / 1000).toFixed(1)} s: ${said === "" ? "(no text)" : said}`);
    return 0;
  } catch (thrown) {
    if (!(thrown instanceof ProxyError)) throw thrown;
    say(`It was not answered. ${thrown.message}`);
    return 1;
  }
}

const person = () => ({ home: homedir(), env: process.env });

function placeOf(id: ClientId, { home }: Environment): SettingsFile {
  const settings = clientOf(id).file!;
  return { id, settings, file: settings.locate(person()), home, warn: say };
}
