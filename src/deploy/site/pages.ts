/** The pages of the documents' site, in the order of its menu. */
export interface SitePage {
  /** The document, by its path from the root of the repository. */
  document: string;
  /** The address within the site, without `.html`. */
  name: string;
  /** In the menu. */
  title: string;
  /** A sentence for `llms.txt` and search engines. */
  about: string;
}

const page = (document: string, name: string, title: string, about: string): SitePage => ({
  document,
  name,
  title,
  about,
});

export const sitePages: readonly SitePage[] = [
  page(
    "README.md",
    "index",
    "Start",
    "What dragoman is, how to try and install it, accounts, keys, security, privacy.",
  ),
  page(
    "src/deploy/site/SETUP.md",
    "setup",
    "Setup by an agent",
    "Steps with which a coding agent sets dragoman up for a person.",
  ),
  page(
    "src/clients/README.md",
    "tools",
    "Tools",
    "What `dragoman connect` writes for each tool, and what to watch for.",
  ),
  page(
    "src/cli/README.md",
    "commands",
    "Commands",
    "All commands and options, completion, use from editors and scripts.",
  ),
  page("src/config/README.md", "config", "Config", "config.json, environment variables, other providers, budgets."),
  page("src/api/README.md", "api", "API", "Endpoints, errors, retries and time limits."),
  page("src/dialects/README.md", "dialects", "Dialects", "What survives translation between the APIs."),
  page("src/deploy/README.md", "containers", "Containers", "The image, compose, health, stop and update."),
  page(
    "src/deploy/TEAMS.md",
    "teams",
    "Teams",
    "Several servers with one Postgres, members, and what each size needs.",
  ),
  page("src/observe/README.md", "observe", "Metrics", "Metrics, traces, and a dashboard for Grafana."),
  page(
    "src/accounts/TERMS.md",
    "terms",
    "Terms and risks",
    "Which terms apply, what dragoman does about them, and what stays your risk.",
  ),
  page(
    "src/deploy/site/COMPARED.md",
    "compared",
    "dragoman or …",
    "dragoman beside its peers, with the source and date of each fact.",
  ),
  page("test/bench/README.md", "benchmarks", "Benchmarks", "How fast it is, and how that is measured."),
  page("src/README.md", "source", "Source", "How the code works."),
  page(
    ".github/CHANGELOG.md",
    "changes",
    "Changes",
    "What is new in each version, what is promised, and what to do before an upgrade.",
  ),
  page(".github/CONTRIBUTING.md", "contributing", "Contributing", "How to change it."),
  page(".github/SECURITY.md", "security", "Security", "How to report a vulnerability."),
];
