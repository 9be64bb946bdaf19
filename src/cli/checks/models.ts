/** What the config says of models: providers that list theirs, and chains that name models which exist. No request costs anything. */
import type { Config } from "../../config/schema";
import { asProxyError } from "../../lib/errors";
import { plural } from "../../lib/format";
import { singleLimit } from "../../lib/net/out/clock";
import { isAutoName } from "../../proxy/upstream/copilot/auto-model";
import { aliasOf, findListed } from "../../proxy/upstream/models/model-name";
import { openProviders, type Providers } from "../../proxy/upstream/providers/provider";
import { fetchProviderModels } from "../../proxy/upstream/providers/provider-model-list";
import { listedModels } from "./accounts";
import { about, type CheckContext, type Finding } from "./check";

/** Milliseconds for the list of one provider. */
const timeoutMs = 4_000;

/** Each provider: whether its address and key work, as its model list shows. */
export async function checkProviders(subject: CheckContext): Promise<Finding[]> {
  const { config } = subject;
  if (!config) return [];
  const providers = openProviders({ current: config }, subject.version, {
    now: Date.now,
    monotonic: () => performance.now(),
  });
  return Promise.all(
    providers.names().map(async (name) => {
      const finding = about(`provider ${name}`);
      const provider = providers.find(name);
      const { models } = provider.settings;
      if (models) return finding.ok(`The config lists ${plural(models.length, "model")} of it.`);
      try {
        const listed = await fetchProviderModels(provider, singleLimit(timeoutMs));
        return finding.ok(`It answers, and lists ${plural(listed.length, "model")}.`);
      } catch (thrown) {
        return finding.warn(
          asProxyError(thrown).message,
          `Check its address and key in config.json. If it has no model list, name its models in \`providers.${name}.models\`.`,
        );
      }
    }),
  );
}

/** Each chain of `fallbacks`: models that do not exist, and circles. */
export async function checkFallbacks(subject: CheckContext): Promise<Finding[]> {
  const { config } = subject;
  if (!config || Object.keys(config.fallbacks).length === 0) return [];
  const finding = about("fallbacks");
  const chains = Object.entries(config.fallbacks);
  const models = await listedModels(subject);
  const providers = openProviders({ current: config }, subject.version, {
    now: Date.now,
    monotonic: () => performance.now(),
  });
  const idOf = (name: string) => findListed(name, models)?.id ?? name;
  const unknown = new Set(
    chains
      .flatMap(([name, others]) => [name, ...others])
      .filter((name) => !isKnown(name, { models, providers, aliases: config.modelAliases })),
  );
  const findings = [...unknown].map((name) =>
    finding.warn(
      `\`${name}\` is no model of your accounts or providers.`,
      "Correct the name in `fallbacks`; `dragoman models` lists them all.",
    ),
  );
  for (const circle of circlesIn(new Map(chains.map(([name, others]) => [idOf(name), others.map(idOf)]))))
    findings.push(
      finding.warn(
        `The chains go in a circle: ${circle.join(" → ")}.`,
        "No request does, because only the chain of the requested model is used. Shorten the chains if they were to go on.",
      ),
    );
  return findings.length > 0 ? findings : [finding.ok(`${plural(chains.length, "chain")} of models.`)];
}

interface Known {
  /** Empty if the accounts' lists are not known: then every name may be theirs. */
  models: { id: string }[];
  providers: Providers;
  aliases: Config["modelAliases"];
}

function isKnown(name: string, { models, providers, aliases }: Known): boolean {
  if (isAutoName(name)) return true;
  if (name.includes("/")) return providers.findByModel(name) !== undefined;
  const alias = aliasOf(name, aliases);
  return models.length === 0 || findListed(name, models) !== undefined || (alias !== undefined && alias !== name);
}

/** The models of `routes` that do not exist. */
export async function checkRoutes(subject: CheckContext): Promise<Finding[]> {
  const { config } = subject;
  const routes = Object.entries(config?.routes ?? {});
  if (!config || routes.length === 0) return [];
  const finding = about("routes");
  const models = await listedModels(subject);
  const unknown = routes.filter(([, model]) => models.length > 0 && findListed(model, models) === undefined);
  if (unknown.length === 0) return [finding.ok(`${plural(routes.length, "route")} by kind of request.`)];
  return unknown.map(([name, model]) =>
    finding.warn(
      `\`${model}\`, to which \`${name}\` is routed, is no model of your accounts: the client's own model serves.`,
      "Correct the name in `routes`; `dragoman models` lists them all.",
    ),
  );
}

/** Circles of chains, each from its first model back to it. */
function circlesIn(chains: ReadonlyMap<string, readonly string[]>): string[][] {
  const circles: string[][] = [];
  const done = new Set<string>();
  const follow = (path: readonly string[]) => {
    const name = path.at(-1)!;
    for (const next of new Set(chains.get(name))) {
      const at = path.indexOf(next);
      if (at !== -1) circles.push([...path.slice(at), next]);
      else if (!done.has(next)) follow([...path, next]);
    }
    done.add(name);
  };
  for (const name of chains.keys()) if (!done.has(name)) follow([name]);
  return circles;
}
