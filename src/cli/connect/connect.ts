/** `dragoman connect`: prints a client's settings for the running server, writes them to its file, or undoes that. */
import { homedir } from "node:os";
import { type ClientSetup, variablesBeside } from "../../clients/client";
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

/** The options of the command line. */
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
  /** A model's id, in any form that a request may use. */
  model?: string;
  shell: Shell;
  /** Make a test call even if the model is not free. */
  test: boolean;
  force: boolean;
}

interface ConnectArguments extends ConnectFlags {
  environment: Environment;
  client?: string;
  model?: string;
  shell?: string;
}

/** @throws UsageError for options that exclude each other, and for an unknown client or shell */
export async function connectFrom(given: ConnectArguments): Promise<number> {
  const { environment, client, model, shell, test = false, force = false } = given;
  const actions = (["print", "write", "undo"] as const).filter((action) => given[action]);
  if (actions.length > 1) throw new UsageError(`--${actions.join(" and --")} cannot be used together.`);
  const [action = "print"] = actions;
  if (force && action !== "undo") throw new UsageError("--force can only be used with --undo.");
  if (client === undefined) {
    if (actions.length > 0) throw new UsageError(`Name a client: ${clientIds.join(", ")}.`);
    return listClients(environment);
  }
  if (!isClientId(client))
    throw new UsageError(`There is no client \`${client}\`. Known clients: ${clientIds.join(", ")}.`);
  if (shell !== undefined && !isShell(shell)) throw new UsageError(`--shell must be one of: ${shellNames.join(", ")}.`);
  const options = { environment, client, model, test, force, shell: shell ?? usualShell(process.env) };
  return action === "undo" ? undo(options) : point(options, action);
}

/** Lists all clients with the state of their settings files. */
function listClients(environment: Environment): number {
  const url = findServer(environment)?.url ?? "http://127.0.0.1:4141";
  const rows = clientIds.map((id) => {
    const { file, state } = clientStatus(id, { ...person(), url });
    return [id, clientOf(id).name, file ? shortened(file) : "–", file ? states[state] : "none; settings are printed"];
  });
  print(...table([["client", "name", "settings file", "state"], ...rows]));
  say(
    "",
    "`dragoman connect <client>` prints its settings, --write writes them to its file, --undo restores the file.",
  );
  return 0;
}

const states = {
  absent: "no file yet",
  elsewhere: "not connected",
  here: "connected",
  overridden: "connected, but another setting takes precedence",
  unreadable: "cannot be read",
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
    if (action === "write") throw new UsageError(`${client.name} has no settings file: set the lines above yourself.`);
    return options.test ? test(options, server, setup, models) : 0;
  }
  await write(options, setup, server);
  const code = await test(options, server, setup, models);
  sayWhatIsLeft(options, setup, server);
  return code;
}

/** Warns if the settings contain a key that a restart will replace. */
function sayRotation({ keys: [taken, ...others] }: RunningServer): void {
  if (taken?.from !== "DRAGOMAN_API_KEY" || !others.some(({ from }) => from === "config.json")) return;
  say(
    "The server still accepts the key of DRAGOMAN_API_KEY. The key in config.json takes effect at the next start: restart the server, then run this command again.",
    "",
  );
}

function printSetup({ client: id, shell }: ConnectOptions, setup: ClientSetup, server: RunningServer): void {
  const client = clientOf(id);
  const lines = [`${client.name} → ${server.url}${server.demo ? " (DEMO)" : ""}, model ${setup.model.id}`, ""];
  if (client.file) {
    const place = shortened(client.file.locate(person()));
    lines.push(`In ${place} (\`dragoman connect ${id} --write\` writes this there, \`--undo\` restores the file):`);
    lines.push("", freshFile(client, setup));
  }
  const variables = setVariables(setup.variables, shell);
  if (variables !== "") {
    const instead = client.file && variablesBeside(setup).length === 0 ? "Or in" : "In";
    lines.push(`${instead} the environment (${shells[shell].name}; see --shell for others):`, "", variables, "");
  }
  const programs = setup.programs.filter((program) => program.shell === undefined || program.shell === shell);
  for (const { name, text } of programs.length > 0 ? programs : setup.programs.slice(0, 1))
    lines.push(`${name}:`, "", text, "");
  if (setup.note) lines.push(setup.note);
  if (setup.command) lines.push(`Then run: ${setup.command}`);
  print(lines.join("\n").trimEnd());
}

async function write(
  { client: id, environment }: ConnectOptions,
  setup: ClientSetup,
  server: RunningServer,
): Promise<void> {
  const { file, before, after, kept, open } = await writeSettings(placeOf(id, environment), setup.edits);
  if (before === after) say(`${shortened(file)} already has these settings; nothing was changed.`);
  const key = server.keys[0]?.value;
  const secrets = server.keys.map(({ value }) => value);
  for (const line of unifiedDiff(before, after, shortened(file))) print(maskSecrets(line, secrets));
  if (open && key !== undefined && JSON.stringify(setup.edits).includes(JSON.stringify(key)))
    say(
      `Others on this machine can read ${shortened(file)}, and it contains the client key now. Run: chmod 600 ${JSON.stringify(file)}`,
    );
  const kind = before === "" ? "removes the file again" : "restores the file as it was before";
  if (kept) say(`\`dragoman connect ${id} --undo\` ${kind}.`);
}

/** After the file is written: conflicting settings, what the file cannot contain, and what to run. */
function sayWhatIsLeft({ client: id }: ConnectOptions, setup: ClientSetup, { url }: RunningServer): void {
  const { file = "", caveats = [] } = clientStatus(id, { ...person(), url });
  for (const caveat of caveats) say(`${shortened(file)} points to dragoman now, but ${caveat}.`);
  const missing = variablesBeside(setup);
  if (setup.note && missing.length > 0)
    say(setup.note, `\`dragoman connect ${id}\` prints the line that sets ${missing.join(", ")}.`);
  if (setup.command) say(`Then run: ${setup.command}`);
}

async function undo({ client: id, environment, force }: ConnectOptions): Promise<number> {
  const { name, file } = clientOf(id);
  if (!file) throw new UsageError(`${name} has no settings file, so there is nothing to undo.`);
  const undone = await undoSettings(placeOf(id, environment), force);
  if (!undone) {
    say(`Nothing to undo: dragoman has not written to ${name}'s settings.`);
    return 0;
  }
  const path = shortened(undone.file);
  say(
    {
      restored: `${path} is restored to what it was before dragoman wrote to it.`,
      "taken out": `dragoman's settings are removed from ${path}; other changes made there since then are kept.`,
      removed: `${path} is removed: dragoman had created it.`,
      "as it was": `${path} is already what it was before dragoman wrote to it.`,
    }[undone.state],
  );
  if (undone.kept) say(`The changed file is kept in ${shortened(undone.kept)}.`);
  return 0;
}

async function test(
  { client: id, test: isRequested }: ConnectOptions,
  server: RunningServer,
  setup: ClientSetup,
  { offered, choice }: Offer,
): Promise<number> {
  const { dialect } = clientOf(id);
  const model = freeModel(dialect, setup.model, [...choice.all, ...offered]) ?? (isRequested ? setup.model : undefined);
  if (!model) {
    say(
      `No test call was made, because no model is free of charge. \`dragoman connect ${id} --test\` makes one with ${setup.model.id}; ${probeCost(setup.model)}.`,
    );
    return 0;
  }
  say(`Making one small test call in the client's API dialect (${dialect}) with ${model.id}; ${probeCost(model)}.`);
  try {
    const { took, text } = await probe(server, dialect, model);
    say(`Answered in ${(took / 1000).toFixed(1)} s: ${text === "" ? "(no text)" : text}`);
    return 0;
  } catch (thrown) {
    if (!(thrown instanceof ProxyError)) throw thrown;
    say(`The test call failed. ${thrown.message}`);
    return 1;
  }
}

const person = () => ({ home: homedir(), env: process.env });

function placeOf(id: ClientId, { home }: Environment): SettingsFile {
  const settings = clientOf(id).file!;
  return { id, settings, file: settings.locate(person()), home, warn: say };
}
