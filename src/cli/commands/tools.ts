/** The commands about coding tools and their keys and limits. */
import { command, flag, text } from "../command";
import { json, listFrom, tools, yes } from "./options";

const connect = command({
  name: "connect",
  argument: "[client]",
  values: tools,
  about: "Set up a client to use dragoman; without a name, list the clients",
  brief: "Set up Claude Code, Codex, …",
  options: {
    print: flag("Print its settings (default)"),
    write: flag("Write the settings to its own file, after a backup, and make one test call"),
    undo: flag("Restore the file as it was before dragoman wrote to it"),
    force: flag("With --undo: also undo settings that were changed since; a copy of the file is kept"),
    yes: flag("With --undo: do not ask", "y"),
    model: text("<id>", "The model to use, instead of the newest that suits the client"),
    key: text("<key>", "The client key to use, instead of a new one named after the client"),
    keyHelper: flag("Claude Code: keep the key out of its file; it asks `dragoman key print` for it"),
    from: text(
      "<address>",
      "Set it up for a team that this machine is signed in to, instead of the server that runs here",
    ),
    shell: text("<name>", "Print commands for this shell: bash, zsh, fish, powershell or cmd", {
      values: async () => (await import("../../clients/shells")).shellNames,
    }),
    statusline: flag("For claude-code: show what the session and its last prompt cost in the status line"),
    project: text(
      "<name>",
      "Count requests for a project: those of this folder, or all where the client cannot tell folders apart",
    ),
    test: flag("Make the test call even if no model is free of charge"),
  },
  run: async (given) => (await import("../connect/connect")).connectFrom(given),
});

const run = command({
  name: "run",
  argument: "[...tool]",
  values: tools,
  about: "Run a tool through dragoman once, and start a server if none runs; arguments after -- go to the tool",
  brief: "Start a tool, write nothing",
  options: {
    model: text("<id>", "The model to use, instead of the newest that suits the tool"),
    key: text("<key>", "The client key to use"),
    demo: flag("If no server runs: start the demo, which needs no account"),
  },
  run: async (given) => (await import("../run-tool")).runTool(given),
});

const keyCommands = [
  command({
    name: "key add",
    argument: "<name>",
    about: "Create a client key and print it, this once",
    brief: "A key for each tool or person",
    options: {
      models: text("<ids>", "The models that the key may use, separated by commas; * stands for any text"),
      expires: text("<date>", "When the key expires, such as 2027-01-31"),
      yes: flag("Also give each connected tool that needs one a key of its own, without asking", "y"),
    },
    run: async (given) => (await import("../key")).keyAdd({ ...given, models: listFrom(given.models) }),
  }),
  command({
    name: "key ls",
    about: "List the client keys; a key itself is never shown",
    options: { json: json("/api/admin/keys") },
    run: async (given) => (await import("../key")).keyLs(given),
  }),
  command({
    name: "key print",
    argument: "[name]",
    about:
      "Print a key that is kept on this machine; without a name, one of a team that this machine is signed in to, which renews itself",
    options: { from: text("<address>", "The address of the team; it may be left out if there is only one") },
    run: async ({ environment, from, name }) =>
      name === undefined
        ? (await import("../login")).printKey({ environment, address: from })
        : (await import("../kept-keys")).printKept(environment, name),
  }),
  command({
    name: "key rm",
    argument: "<name>",
    about: "Remove a client key: its next request is refused",
    options: { yes },
    run: async (given) => (await import("../key")).keyRm(given),
  }),
];

const budgetCommands = [
  command({
    name: "budget",
    about: "Show what is used of each budget",
    brief: "What may be spent",
    options: {
      name: text("<budget>", "Show this budget, and all that have an amount of their own in it"),
      json: json("/api/admin/budgets"),
    },
    run: async (given) => (await import("../budget")).budget(given),
  }),
  command({
    name: "budget add",
    argument: "<name>",
    about: "Add a budget",
    options: {
      limit: text("<number>", "How much may be used in a period"),
      unit: text("<unit>", "credits (default), premium or requests"),
      per: text("<period>", "month (default) or day"),
      then: text("<what>", "At the limit: stop (default), warn or fallback"),
      member: text("<pattern>", "The members whose requests count; * stands for any text"),
      account: text("<pattern>", "The accounts"),
      key: text("<pattern>", "The client keys"),
      model: text("<pattern>", "The models"),
      project: text("<pattern>", "The projects"),
      each: text("<who>", "Give each member, key, account or project its own limit"),
      limitOf: text("<limits>", "Different limits for some, with --each: anna=3000,ben=500"),
    },
    run: async (given) => (await import("../budget")).budgetAdd(given),
  }),
  command({
    name: "budget rm",
    argument: "<name>",
    about: "Remove a budget",
    options: { yes },
    run: async (given) => (await import("../budget")).budgetRm(given),
  }),
];

export const toolCommands = { title: "Tools", commands: [connect, run] };
export const limitCommands = { title: "Limits", commands: [...keyCommands, ...budgetCommands] };
