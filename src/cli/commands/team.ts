/** The commands for the members of a team, and for its database. */
import { memberOptions } from "../../people/keys/member-options";
import { command, flag, type Option, text } from "../command";
import { json, yes } from "./options";

const limitOptions: Readonly<Record<string, Option<string | undefined>>> = Object.fromEntries(
  Object.values(memberOptions).map(({ name, value, about }) => [name, text(value, about)]),
);

export const teamCommands = {
  title: "Team",
  commands: [
    command({
      name: "member add",
      argument: "<name>",
      about: "Invite a member of a team, and print the invitation link; again for another key",
      brief: "Invite others, with keys of theirs",
      options: {
        url: text("<address>", "The address at which members reach the servers, such as https://dragoman.example"),
        ...limitOptions,
      },
      run: async (given) => (await import("../members")).memberAdd(given),
    }),
    command({
      name: "member set",
      argument: "<name>",
      about: "Change a member's limits, for all their keys and within a second",
      options: limitOptions,
      run: async (given) => (await import("../members")).memberSet(given),
    }),
    command({
      name: "member withdraw",
      argument: "<name>",
      about: "Take back a member's invitation link that was not used",
      run: async (given) => (await import("../members")).memberWithdraw(given),
    }),
    command({
      name: "member ls",
      about: "List the members: limits, accounts, keys, and what they used this month",
      options: { json: json("/api/admin/members") },
      run: async (given) => (await import("../members")).memberLs(given),
    }),
    command({
      name: "member rm",
      argument: "<name>",
      about: "Remove a member: their keys are refused at once, and their accounts are signed out",
      options: { yes },
      run: async (given) => (await import("../members")).memberRm(given),
    }),
  ],
};

export const databaseCommands = [
  command({
    name: "database copy",
    about: "Copy everything from the data folder to the database; nothing is removed",
    options: {
      dryRun: flag("Count what would be copied, and change nothing"),
      merge: flag("Merge into a database that already has data; its config is kept"),
    },
    run: async (given) => (await import("../database/copy")).databaseCopy(given),
  }),
  command({
    name: "database reseal",
    about: "Seal the secrets in the database with DRAGOMAN_SEAL_KEY_NEXT, while no server runs",
    run: async ({ environment }) => (await import("../database/reseal")).databaseReseal(environment),
  }),
];
