/** The commands that check dragoman and keep it current, and those that are needed rarely. */
import { beside, command, flag, optional, parsed, text } from "../command";
import { json, portFrom, tools, yes } from "./options";
import { databaseCommands } from "./team";

export const upkeepCommands = {
  title: "Upkeep",
  commands: [
    command({
      name: "doctor",
      about: "Check the setup and say how to fix problems; changes nothing",
      brief: "Find out what is wrong",
      options: {
        json: json(),
        deep: flag(
          "Ask each endpoint of Copilot once, compare its answers with what is known, and write a report; says first what it costs",
        ),
        client: text("<name>", "Say only of this client what is on, what is off and what turns it on", {
          values: tools,
        }),
        yes: beside(["deep"], flag("do not ask for confirmation")),
        report: optional(
          "[file]",
          "Write a file to attach to an issue, without secrets and private names; with --deep to this one, or else to one named by the time",
          (given) => given,
        ),
        budget: beside(
          ["deep", "yes"],
          text("<number>", "AI credits or premium requests that looks may cost; else only free ones are taken"),
        ),
        port: parsed("<number>", "The port that `start` will use", portFrom, { usual: "4141" }),
      },
      run: async (given) => (await import("../doctor")).doctor(given),
    }),
    command({
      name: "update",
      about: "Say whether there is a newer release, and what to type to get it; changes nothing",
      brief: "How to get the newest release",
      run: async (given) => (await import("../update/update")).update(given),
    }),
    command({
      name: "uninstall",
      about: "Remove the service, the settings in tools and this program; say what stays",
      brief: "Take it off this machine",
      options: { yes, purge: flag("Remove config, accounts and history too") },
      run: async (given) => (await import("../uninstall")).uninstall(given),
    }),
  ],
};

export const otherCommands = {
  title: "Also",
  commands: [
    command({
      name: "help",
      argument: "[...command]",
      about: "Show what dragoman is, or the options of a command",
      run: async (given) => (await import("../help")).showHelp(given.command, given.groups),
    }),
    command({
      name: "version",
      about: "Show the version",
      async run({ version }) {
        (await import("../terminal")).print(version);
        return 0;
      },
    }),
    command({
      name: "health",
      about: "Say whether the running server is ready, for health checks of containers",
      options: { json: json() },
      run: async (given) => (await import("../health")).healthCheck(given),
    }),
    command({
      name: "completion",
      argument: "<shell>",
      values: async () => (await import("../completion")).completedShells,
      about: "Print a completion script for bash, zsh, fish or powershell",
      async run({ shell, groups }) {
        const [{ completion }, { print }] = await Promise.all([import("../completion"), import("../terminal")]);
        print((await completion(shell, groups)).trimEnd());
        return 0;
      },
    }),
    command({
      name: "statusline",
      about: "Print what a Claude Code session cost, for its status line; reads Claude Code's JSON on stdin",
      run: async (given) => (await import("../statusline")).statusline(given),
    }),
    ...databaseCommands,
  ],
};
