/** The ways to a Copilot plan: what each gives and costs. One table, which `auth roads`, the page Accounts and TERMS.md show. */

/** Each in a sentence or less, as read in November 2026. */
interface Road {
  name: string;
  /** A command or variable. */
  how: string;
  page: string;
  pays: string;
  promise: string;
  happened: string;
  models: string;
  lost: string;
}

export const roadColumns: Record<keyof Road, string> = {
  name: "way",
  how: "how",
  page: "GitHub's page names",
  pays: "who pays",
  promise: "what GitHub promises",
  happened: "what has happened to people",
  models: "models and limits",
  lost: "what is lost",
};

const suffered = "Nothing: other clients do the same, and GitHub lets them.";
const plan = "Those of the plan.";
const person = "The person's plan.";
const organization = "The organization; no seat is used.";
const forRuntime = "That its own runtime may use such a token. How another client uses it is not documented.";
const noneFound = "No report was found.";
const policies =
  "Those that the organization's policies enable. User budgets of GitHub do not apply; those of dragoman do.";
const noQuota = "GitHub does not say what is left.";

export const roads: readonly Road[] = [
  {
    name: "Editor app",
    how: "dragoman auth",
    page: "GitHub Copilot Plugin",
    pays: person,
    promise: suffered,
    happened:
      "Some accounts were suspended, most after scripted or unusual use; GitHub's messages since January 2026 name “unsupported clients”.",
    models: plan,
    lost: "Nothing.",
  },
  {
    name: "opencode's app",
    how: "dragoman auth --oauth-app=opencode",
    page: "opencode",
    pays: person,
    promise: `${suffered} Its Marketplace lists opencode.`,
    happened: noneFound,
    models: plan,
    lost: "Enterprises below ghe.com do not know it.",
  },
  {
    name: "OAuth app of your own",
    how: "dragoman auth --oauth-app=<client id>",
    page: "The name that you gave it.",
    pays: person,
    promise: "That its SDK takes tokens of such apps; for other clients nothing.",
    happened: noneFound,
    models: "Those of the plan; the host may list fewer to an app that it does not know.",
    lost: "Ten minutes, once, to register it.",
  },
  {
    name: "GitHub App of an organization",
    how: "dragoman auth add --app <id> --installation <number> --private-key <file>",
    page: "Your App, when an owner of the organization installs it.",
    pays: organization,
    promise: forRuntime,
    happened: noneFound,
    models: policies,
    lost: noQuota,
  },
  {
    name: "Job of GitHub Actions",
    how: "DRAGOMAN_GITHUB_TOKEN with permissions: copilot-requests: write",
    page: "None: nobody signs in.",
    pays: "The organization that owns the repository; of a personal one, its owner's plan.",
    promise: forRuntime,
    happened: noneFound,
    models: policies,
    lost: `${noQuota} The token ends with the job.`,
  },
  {
    name: "Copilot CLI of this machine (experimental)",
    how: "dragoman auth add --copilot-cli",
    page: "GitHub Copilot CLI, when you run copilot login.",
    pays: person,
    promise:
      "That a program may ask its CLI for the models' address and token; it calls that experimental, and a release may change it.",
    happened: noneFound,
    models: "Those of the plan; an organization's policy for the Copilot CLI has to be on.",
    lost: "Requests carry the CLI's name beside dragoman's. The CLI, 190 MB, has to be installed and is started now and then.",
  },
];
