/** The commands about GitHub accounts, what is left of them, and their models. */
import { lineFields } from "../../routes/line-fields";
import { beside, command, flag, optional, text } from "../command";
import { UsageError } from "../usage-error";
import { json, numberFrom, signInOptions, signInWith } from "./options";

const watch = numberFrom("--watch", [1, 86_400], "a number of seconds");

const fields = lineFields.map((name) => `{${name}}`);

export const accountCommands = {
  title: "Accounts",
  commands: [
    command({
      name: "auth",
      about: "Sign in to GitHub, or sign in again",
      brief: "Sign in to GitHub",
      options: signInOptions,
      run: async (given) => (await import("../auth")).authSignIn({ ...given, ...signInWith(given), another: false }),
    }),
    command({
      name: "auth add",
      about: "Sign in with another account of your own, or with a GitHub App of an organization",
      options: {
        ...signInOptions,
        app: text("<id>", "A GitHub App, by its App ID or client id: its requests are billed to the organization"),
        installation: beside(["app"], text("<number>", "its installation in the organization")),
        repository: beside(["app"], text("<number>", "any repository there, for the older repository permission")),
        privateKey: beside(["app"], text("<file>", "the .pem file of its private key; - reads it from stdin")),
        copilotCli: optional(
          "[path]",
          "Experimental: what GitHub's Copilot CLI on this machine is signed in with",
          (given) => (given === true ? "copilot" : given),
        ),
      },
      run: async (given) => {
        const { authApp, authCli, authSignIn } = await import("../auth");
        const { app, installation, repository, privateKey, copilotCli, ...rest } = given;
        if (copilotCli !== undefined) return authCli({ ...rest, command: copilotCli });
        const signIn = { ...rest, ...signInWith(rest) };
        if (app !== undefined) return authApp({ ...signIn, installation, repository, privateKey, id: app });
        return authSignIn({ ...signIn, another: true });
      },
    }),
    command({
      name: "auth ls",
      about: "List the accounts that are signed in",
      options: { quota: flag("Show the remaining quota of each account, as GitHub reports it now", "q") },
      run: async (given) => (await import("../auth")).authList(given),
    }),
    command({
      name: "auth rm",
      argument: "[index_or_username]",
      about: "Remove an account, by its number in `auth ls` or by its name",
      options: { force: flag("Do not ask for confirmation") },
      async run({ index_or_username: which, ...given }) {
        if (which === undefined)
          throw new UsageError("Name the account: its number in `dragoman auth ls`, or its user name.");
        return (await import("../auth")).authRemove({ ...given, which });
      },
    }),
    command({
      name: "auth roads",
      about: "Show what each way to sign in gives and costs, and what GitHub says of it",
      brief: "What each way to sign in costs",
      run: async () => (await import("../auth")).authRoads(),
    }),
    command({
      name: "login",
      argument: "<address>",
      about: "Sign this machine in to a team elsewhere, as a member of it",
      brief: "Sign in to a team elsewhere",
      run: async (given) => (await import("../login")).login(given),
    }),
    command({
      name: "logout",
      argument: "[address]",
      about: "Sign this machine out of a team, and revoke its key there",
      brief: "Sign out of a team",
      run: async (given) => (await import("../login")).logout(given),
    }),
    command({
      name: "usage",
      about: "Show the remaining quota of each account",
      brief: "What is left of each account",
      options: {
        json: json("/usage"),
        format: text(
          "<text>",
          `Print one line for status bars, of ${fields.slice(0, -1).join(", ")} and ${fields.at(-1)}`,
        ),
        watch: optional("[seconds]", "Print it again every 30 seconds, or at another interval", (given) =>
          given === true ? 30 : given === undefined ? undefined : watch(given),
        ),
      },
      run: async (given) => (await import("../usage")).usage(given),
    }),
    command({
      name: "usage prompts",
      about: "Show what each of the newest prompts cost, and why",
      options: { json: json("/api/admin/prompts?limit=20") },
      run: async (given) => (await import("../usage-by-prompt")).usageByPrompt(given),
    }),
    command({
      name: "usage reconcile",
      argument: "[month]",
      about: "Compare this month, or another such as 2026-11, with GitHub's own report",
      options: {
        json: json(),
        token: text("<->", "A GitHub token that may read your plan, from stdin; it is not stored"),
      },
      run: async (given) => (await import("../reconcile")).reconcileUsage(given),
    }),
    command({
      name: "models",
      about: "List the models of the running server, with their limits and cost",
      brief: "The models, with their cost",
      options: { json: json("/api/admin/models") },
      run: async (given) => (await import("../models")).models(given),
    }),
  ],
};
