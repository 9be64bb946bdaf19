/** `dragoman connect`: prints a client's settings for the running server, writes them to its file, or undoes that. */
import {
  type Client,
  type ClientSetup,
  type Connection,
  type Destination,
  type Switch,
  variablesBeside,
} from "../../clients/client";
import { type ClientId, clientIds, clientOf, filesOf, freshFiles } from "../../clients/index";
import { HalfDone } from "../../clients/settings-file/all-or-none";
import { backupsIn } from "../../clients/settings-file/backup";
import { unifiedDiff } from "../../clients/settings-file/diff";
import { isByHand, writeSettings } from "../../clients/settings-file/write";
import { isShell, type Shell, setVariables, shellNames, shells, usualShell } from "../../clients/shells";
import { clientStatus, presentSettings } from "../../clients/status";
import type { Environment } from "../../config/environment";
import { ProxyError } from "../../lib/errors";
import { duration } from "../../lib/format";
import { projectName } from "../../proxy/relay/hints";
import { findListed } from "../../proxy/upstream/models/model-name";
import { clientNamed } from "../client-named";
import { writtenName } from "../installation";
import { forgetKept, keepKey, keptKeysFile } from "../kept-keys";
import { keyStoreOf } from "../key-store";
import { table, wrapped } from "../layout";
import { demoNotice, findServer, type RunningServer, requireServer } from "../running-server";
import { mayRemove, print, say, shortened, withProgress } from "../terminal";
import { UsageError } from "../usage-error";
import { type KeyChoice, keyPlaceholder, keyPlaces, keyToPrint, keyToWrite, presentKeys } from "./key-choice";
import { modelsOf, type Offer, pick } from "./models";
import { isFree, probe, probeCost, probeModel } from "./probe";
import { connectProject } from "./project";
import { maskSecrets } from "./redact";
import { orRevoke, person, placeOf, sayWhoMayRead, takesKeysOf } from "./tools";
import { undoFiles } from "./undo";

/** The options of the command line. */
interface ConnectArguments
  extends Record<"print" | "write" | "undo" | "force" | "test" | "yes" | "statusline" | "keyHelper", boolean> {
  environment: Environment;
  client?: string;
  model?: string;
  key?: string;
  from?: string;
  project?: string;
  shell?: string;
}

/** The same, checked. */
interface ConnectOptions extends ConnectArguments {
  client: ClientId;
  shell: Shell;
}

/** @throws UsageError for options that exclude each other, and for an unknown client or shell */
export async function connectFrom(given: ConnectArguments): Promise<number> {
  // A zsh reads what a bash reads.
  const shell = given.shell === "zsh" ? "bash" : given.shell;
  const { environment, client, model, key, from, test, force, yes, statusline, project, keyHelper } = given;
  const actions = (["print", "write", "undo"] as const).filter((action) => given[action]);
  if (actions.length > 1) throw new UsageError(`--${actions.join(" and --")} cannot be used together.`);
  const [action = "print"] = actions;
  if (force && action !== "undo") throw new UsageError("--force can only be used with --undo.");
  if (key !== undefined && action === "undo") throw new UsageError("--key cannot be used with --undo.");
  if (client === undefined) {
    if (actions.length > 0) throw new UsageError(`Name a client: ${clientIds.join(", ")}.`);
    return listClients(environment);
  }
  const id = clientNamed(client);
  if (statusline && id !== "claude-code") throw new UsageError("--statusline is for claude-code only.");
  if (project !== undefined && !projectName.test(project))
    throw new UsageError(
      "--project must be at most 64 letters, digits, spaces and .@+-_, and begin with a letter or digit.",
    );
  const ownSettings = project === undefined ? undefined : clientOf(id).project;
  if (project !== undefined && ownSettings) {
    if ([model, key, from, shell].some((each) => each !== undefined) || test || statusline || keyHelper)
      throw new UsageError(`--project only names the project, for ${id}: use it without options of other settings.`);
    return connectProject({ environment, client: id, project, force, yes }, ownSettings, action);
  }
  if (keyHelper && (!clientOf(id).asksForKey || action !== "write" || from !== undefined))
    throw new UsageError("--key-helper can only be used with --write, for Claude Code and the server on this machine.");
  if (shell !== undefined && !isShell(shell))
    throw new UsageError(
      `--shell must be one of: ${shellNames.map((name) => shells[name].name.toLowerCase()).join(", ")}.`,
    );
  const options = { ...given, environment, client: id, shell: shell ?? usualShell(process.env) };
  return action === "undo" ? undo(options) : point(options, action);
}

/** Lists all clients with the state of their settings files. */
async function listClients(environment: Environment): Promise<number> {
  const server = findServer(environment);
  const url = server?.url ?? "http://127.0.0.1:4141";
  const rows = await Promise.all(
    clientIds.map(async (id) => {
      const { file, state, keys, off = [] } = clientStatus(id, { ...person(), url });
      const isConnected = server && (state === "here" || state === "overridden");
      const taken = isConnected ? await takesKeysOf({ keys }, keyStoreOf(environment, server)) : true;
      const besides = off.length > 0 ? `, without ${off.map(nameOf).join(", ")}` : "";
      const said = taken === false ? "connected, but its key is refused" : states[state] + (isConnected ? besides : "");
      return [id, clientOf(id).name, file ? shortened(file) : "–", file ? said : "printed only"];
    }),
  );
  print(...table([["client", "name", "settings file", "state"], ...rows], { spare: ["name", "settings file"] }));
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
  const { from, project, statusline } = options;
  const server = from
    ? await (await import("../login")).signedInServer(options.environment, from)
    : requireServer(options.environment);
  if (server.demo) say(demoNotice, "");
  const models = await modelsOf(server);
  const chosen = chosenModel(options, models);
  const store = keyStoreOf(options.environment, server);
  // A tool that asks for its key gets one that renews itself; any other gets a key of its own.
  const keyCommand = from && client.asksForKey ? `${writtenName()} key print --from ${server.url}` : undefined;
  const renewed: KeyChoice | undefined = keyCommand ? { key: server.keys[0]?.value } : undefined;
  const settingsFor = ({ key }: KeyChoice, command = keyCommand) =>
    client.setUp({
      url: addressFor(server, project),
      key,
      models: models.choice,
      ...chosen,
      serves: (name) => isServed(name, client, models),
      keyCommand: command,
      statusline: statusline ? `${writtenName()} statusline` : undefined,
    });
  if (action === "print" || !client.file) {
    const canWrite = keyPlaces((key) => settingsFor({ key })).length > 0;
    const choice = renewed ?? (await keyToPrint(options.client, server, store, options.key, canWrite));
    const setup = settingsFor(choice);
    printSetup(options, setup, server);
    if (action === "write")
      throw new UsageError(`${client.name} has no file that dragoman can write: set the lines above yourself.`);
    return options.test ? test(options, { server, setup, models, choice }) : 0;
  }
  const present = presentKeys(options.client, (key) => settingsFor({ key }));
  const choice = renewed ?? (await keyToWrite(options.client, server, store, options.key, present));
  const kept =
    options.keyHelper && choice.key !== undefined ? `${writtenName()} key print ${options.client}` : undefined;
  const setup = settingsFor(choice, kept);
  await orRevoke(choice.created, store, async () => {
    const keepAgain = kept && choice.key ? keepKey(options.environment, options.client, choice.key) : undefined;
    try {
      await write(options, { server, setup, choice });
    } catch (thrown) {
      if (!(thrown instanceof HalfDone)) keepAgain?.();
      throw thrown;
    }
  }).catch(async (thrown: unknown) => {
    if (isByHand(thrown))
      printSetup(options, settingsFor(await keyToPrint(options.client, server, store, options.key, false)), server);
    throw thrown;
  });
  const { environment } = options;
  if (kept)
    say(`The key is kept in ${shortened(keptKeysFile(environment))}, which only you can read: \`${kept}\` prints it.`);
  else if (options.keyHelper) say("The server asks for no key, so none is kept.");
  const code = await test(options, { server, setup, models, choice });
  sayWhatIsLeft(options, setup, server);
  return code;
}

/** The model of --model, or the one that the tool's own file names if the server has it. */
function chosenModel(
  { model, client: id }: ConnectOptions,
  { offered, choice }: Offer,
): Pick<Connection, "model" | "named"> {
  if (model !== undefined) return { model: pick(model, offered) };
  const { file } = clientOf(id);
  const named = file?.model?.(presentSettings(id, person()));
  if (typeof named !== "string") return {};
  const meant = file?.aliases?.[named];
  const found = meant === undefined ? findListed(named, offered) : choice[meant];
  return found ? { model: found, named } : {};
}

const isServed = (name: string, { file }: Client, { offered }: Offer): boolean =>
  file?.aliases?.[name] !== undefined || findListed(name, offered) !== undefined;

/** The address of a project's requests needs no header, which not every client can send. */
const addressFor = ({ url }: RunningServer, project: string | undefined): string =>
  project === undefined ? url : `${url}/p/${encodeURIComponent(project)}`;

/** What is written, and where it leads. */
interface Plan {
  server: RunningServer;
  setup: ClientSetup;
  choice: KeyChoice;
}

function printSetup({ client: id, shell }: ConnectOptions, setup: ClientSetup, server: RunningServer): void {
  const client = clientOf(id);
  const lines = [`${client.name} → ${server.url}${server.demo ? " (DEMO)" : ""}, model ${setup.model.id}`, ""];
  for (const [at, { name, text }] of freshFiles(id, setup, person()).entries()) {
    const how = at === 0 ? ` (\`dragoman connect ${id} --write\` writes this there, \`--undo\` restores the file)` : "";
    lines.push(wrapped(`In ${shortened(name)}${how}:`), "", text);
  }
  const variables = setVariables(setup.variables, shell);
  if (variables !== "") {
    const instead = client.file && variablesBeside(setup).length === 0 ? "Or in" : "In";
    lines.push(`${instead} the environment (${shells[shell].name}; see --shell for others):`, "", variables, "");
  }
  lines.push(...whatSwitchesDo(client));
  const programs = setup.programs.filter((program) => program.shell === undefined || program.shell === shell);
  for (const { name, text } of programs.length > 0 ? programs : setup.programs.slice(0, 1))
    lines.push(`${placeNamed(name, variables !== "")}:`, "", text.trimEnd(), "");
  if (setup.note) lines.push(wrapped(setup.note));
  if (setup.command) lines.push(`Then run: ${setup.command}`);
  print(lines.join("\n").trimEnd());
}

/** A file is named with its path. */
function placeNamed(name: string, isAlternative: boolean): string {
  if (!name.startsWith("~/")) return name;
  return `${isAlternative ? "Or in" : "In"} ${name}`;
}

/** One line for each setting that is turned on besides. */
const whatSwitchesDo = ({ switches = [] }: Client): string[] =>
  switches.length === 0 ? [] : [...table(switches.map((each) => [nameOf(each), each.does])), ""];

const nameOf = ({ path }: Switch) => String(path.at(-1));

async function write({ client: id, environment }: ConnectOptions, { setup, server, choice }: Plan): Promise<void> {
  const secrets = [...server.keys.map(({ value }) => value), ...(choice.key === undefined ? [] : [choice.key])];
  const undone: string[] = [];
  const files = filesOf(id, setup.edits, person());
  const all = await writeSettings(
    files.map(({ edits, ...file }) => [placeOf(id, file, environment), { edits }] as const),
  );
  for (const [at, written] of all.entries()) {
    const { before, after, kept } = written;
    const { edits } = files[at]!;
    const path = shortened(written.file);
    if (before === after) say(`${path} already has these settings; nothing was changed.`);
    for (const line of unifiedDiff(before, after, path)) print(maskSecrets(line, secrets));
    if (choice.key !== undefined && JSON.stringify(edits).includes(JSON.stringify(choice.key))) {
      if (choice.created !== undefined)
        say(`Created the client key \`${choice.created}\`, named after the client, and wrote it to ${path}.`);
      sayWhoMayRead(written);
    }
    if (kept) undone.push(before === "" ? `removes ${path} again` : `restores ${path} as it was before`);
  }
  if (undone.length > 0) say(`\`dragoman connect ${id} --undo\` ${undone.join(" and ")}.`);
}

/** After the file is written: conflicting settings, what the file cannot contain, and what to run. */
function sayWhatIsLeft({ client: id }: ConnectOptions, setup: ClientSetup, { url, isTied }: RunningServer): void {
  if (isTied)
    say(
      `The server at ${url} ends with the program that started it, and its address too: start one with \`dragoman start\`, and connect again.`,
    );
  const { file = "", caveats = [] } = clientStatus(id, { ...person(), url });
  for (const caveat of caveats) say(`${shortened(file)} points to dragoman now, but ${caveat}.`);
  const does = whatSwitchesDo(clientOf(id));
  if (does.length > 0) say("", ...does);
  const missing = variablesBeside(setup);
  if (setup.note && missing.length > 0)
    say(setup.note, `\`dragoman connect ${id}\` prints the line that sets ${missing.join(", ")}.`);
  if (setup.command) say(`Then run: ${setup.command}`);
  if (setup.hint) say(setup.hint);
}

async function undo({ client: id, environment, force, yes }: ConnectOptions): Promise<number> {
  const { name, file } = clientOf(id);
  if (!file) throw new UsageError(`${name} has no file that dragoman can write, so there is nothing to undo.`);
  const files = filesOf(id, [], person()).map((each) => placeOf(id, each, environment));
  const backups = backupsIn(environment.home);
  const written = files.flatMap((place) => backups.filter((backup) => backup.id === place.id));
  if (written.length === 0) {
    say(`Nothing to undo: dragoman has not written to ${name}'s settings.`);
    return 0;
  }
  const question = `Restore ${written.map((backup) => shortened(backup.file)).join(" and ")} as before dragoman wrote there?`;
  if (!(await mayRemove(question, yes, "Nothing was changed."))) return 1;
  const before = destinationsOf(id);
  await undoFiles(files, force);
  sayWhereItLeads(id, before);
  forgetKept(environment, id);
  await sayOwnKey(id, environment);
  return 0;
}

const destinationsOf = (id: ClientId) => clientOf(id).file!.destinations(presentSettings(id, person()), process.env);

/** After an undo: where the tool leads with the settings that dragoman had replaced, which may be those of another data folder. */
function sayWhereItLeads(id: ClientId, before: readonly Destination[]): void {
  const { file = "" } = clientStatus(id, { ...person(), url: "" });
  const found = destinationsOf(id).filter(
    ({ address, keyAt }) =>
      typeof address === "string" &&
      before.some((each) => Bun.deepEquals(each.keyAt, keyAt) && each.address !== address),
  );
  const addresses = [...new Set(found.map(({ address }) => String(address)))];
  if (addresses.length > 0) say(`${shortened(file)} leads to ${addresses.join(" and ")}, as it did before.`);
}

/** A key stays valid: the person may have copied it elsewhere. */
async function sayOwnKey(id: ClientId, environment: Environment): Promise<void> {
  const store = keyStoreOf(environment, findServer(environment));
  const { items } = await store.list().catch((thrown) => {
    if (thrown instanceof ProxyError) return { items: [] };
    throw thrown;
  });
  if (items.some((key) => key.name === id))
    say(`The client key \`${id}\` is still valid. ${store.changer("rm", id)} removes it.`);
}

async function test(
  { client: id, test: isRequested }: ConnectOptions,
  { server, setup, models: { offered, choice: known }, choice: { key } }: Plan & { models: Offer },
): Promise<number> {
  const { dialect } = clientOf(id);
  if (key === keyPlaceholder) {
    say("No test call was made, because no client key is known here.");
    return 0;
  }
  const model = probeModel(dialect, setup.model, [...known.all, ...offered]);
  const cost = server.demo ? "the demo charges nothing" : probeCost(model);
  if (!isFree(model) && !isRequested) {
    say(
      `No test call was made, because no model is free of charge. \`dragoman connect ${id} --test\` makes one with ${model.id}; ${cost}.`,
    );
    return 0;
  }
  say(`Making one small test call in the client's API dialect (${dialect}) with ${model.id}; ${cost}.`);
  try {
    const { took, text } = await withProgress(`Waiting for ${model.id}`, () => probe(server, key, dialect, model));
    say(`Answered in ${duration(took)}: ${text === "" ? "(no text)" : text}`);
    return 0;
  } catch (thrown) {
    if (!(thrown instanceof ProxyError)) throw thrown;
    say(`The test call failed. ${thrown.message}`);
    return 1;
  }
}
