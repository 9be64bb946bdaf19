/**
 * Auto: the upstream chooses the model of a conversation. Two protocols end in a session token that belongs to the account;
 * on plans that have nothing else, a chat request without a model is served too.
 */
import type { AutoOffer, AutoProtocol, DemoAccount } from "./accounts";
import type { Model } from "./model";
import { visibleModels, wireModel } from "./models";
import type { Arrival, DemoState } from "./state";
import { type Json, list, plain, Refusal, randomId, record, refusal, string } from "./wire";

/** `POST /auto`. */
export async function chooseAtOnce({ demo, seen, signal }: Arrival, account: DemoAccount): Promise<Response> {
  const version = seen.headers["x-github-api-version"] ?? "";
  const body = record(seen.body);
  if (version < "2026-08-01") throw plain(404, "invalid apiVersion");
  const offer = offerOf(account, "auto");
  await fail(offer, signal);
  if (typeof body.prompt !== "string") throw errorOnly(400, "missing_prompt");
  if (body.multi_turn !== undefined && typeof record(body.multi_turn).routing_intent !== "string")
    throw errorOnly(400, "invalid_multi_turn");
  const tier = body.tier === undefined ? undefined : string(body.tier);
  if (tier !== undefined && !tiersOf(offer).includes(tier)) throw errorOnly(400, "tier_unavailable");
  const { plan } = offer;
  const state = record(body.hydra_rl_multi_turn).state_token;
  if (state !== undefined && (!plan || plan.isForgotten || !string(state).startsWith("hydra_")))
    throw errorOnly(400, "invalid_state_token");
  const model = take(offer, poolOf(demo, account, offer), body.has_image === true);
  const { type, ...capabilities } = record(wireModel(demo, account, model).capabilities);
  return Response.json({
    ...issue(demo, account, offer),
    // The type of the model may be missing here.
    selected_model: { ...wireModel(demo, account, model), capabilities },
    hydra_scores: { reasoning: 0.31, code_gen: 0.82, debugging: 0.12, tool_use: 0.44 },
    discounted_costs: costs(offer, [model]),
    ...(plan && {
      multi_turn_mode: "hydra_rl",
      hydra_rl_multi_turn: { state_token: randomId("hydra_", 24), skip_turns: plan.skip, decision: "hold" },
    }),
  });
}

/** `GET /meta`: the tiers. Older hosts do not have the path. */
export function describeTiers(_: Arrival, account: DemoAccount): Response {
  const offer = offerOf(account, "auto");
  if (offer.hasNoMeta) throw plain(404, "404 page not found");
  const has = tiersOf(offer);
  const tiers = ["efficiency", "balance", "intelligence"].map((id) => ({
    id,
    type: "auto",
    status: has.includes(id) ? { enabled: true } : { enabled: false, message: "Your plan does not include this tier." },
  }));
  return Response.json({ auto: { tiers } });
}

const tiersOf = ({ tiers }: AutoOffer): string[] => tiers ?? ["efficiency", "balance", "intelligence"];

/** `POST /models/session`: a token, and the models among which an intent may choose. */
export async function openSession({ demo, seen, signal }: Arrival, account: DemoAccount): Promise<Response> {
  const offer = offerOf(account, "session");
  await fail(offer, signal);
  if (!list(record(record(seen.body).auto_mode).model_hints).includes("auto"))
    throw errorOnly(400, "missing_model_hints");
  const models = poolOf(demo, account, offer);
  return Response.json({
    ...issue(demo, account, offer),
    available_models: models.map(({ id }) => id),
    selected_model: models[0]?.id,
    discounted_costs: costs(offer, models),
  });
}

/** `POST /models/session/intent`: the choice for a prompt. */
export function chooseByIntent({ demo, seen: { headers, body } }: Arrival, account: DemoAccount): Response {
  const offer = offerOf(account, "session");
  if (headers["copilot-session-token"] === undefined)
    throw refusal(400, "bad_request", "Missing Copilot-Session-Token header");
  requireToken(demo, account, headers);
  const available = list(record(body).available_models).map(string);
  const models = poolOf(demo, account, offer).filter(({ id }) => available.includes(id));
  if (models.length === 0) throw refusal(400, "bad_request", "available_models must name models of the session");
  const model = take(offer, models, false);
  return Response.json({
    chosen_model: model.id,
    candidate_models: models.map(({ id }) => id),
    predicted_label: "needs_reasoning",
  });
}

/** A token that comes with a request must be the account's own and not over. @throws Refusal */
function requireToken(demo: DemoState, account: DemoAccount, headers: Record<string, string>): boolean {
  const token = headers["copilot-session-token"];
  if (token === undefined) return false;
  const found = demo.autoTokens.get(token);
  if (!found || found.account !== account || demo.now() >= found.until)
    throw refusal(400, "bad_request", "Invalid Copilot-Session-Token");
  return true;
}

/**
 * The model of a request on a plan with Auto: by a token any of the pool, without a model the next one, by name none.
 * @returns Undefined where the name decides, as on other plans. @throws Refusal
 */
export function autoModelFor(
  demo: DemoState,
  account: DemoAccount,
  headers: Record<string, string>,
  id: string | undefined,
  endpoint: string,
): string | undefined {
  const { auto } = account;
  const hasToken = requireToken(demo, account, headers);
  if (id === undefined) {
    const omits = auto?.only === true && auto.protocols.includes("omission") && endpoint === "/chat/completions";
    if (!omits) throw refusal(400, "invalid_request_body", "model is required");
    const served = poolOf(demo, account, auto).filter(({ endpoints }) => endpoints?.includes(endpoint) ?? true);
    return take(auto, served, false).id;
  }
  if (auto?.only && !hasToken)
    throw refusal(400, "model_not_supported", "The requested model is not supported.", {
      param: "model",
      type: "invalid_request_error",
    });
  return undefined;
}

function offerOf(account: DemoAccount, protocol: AutoProtocol): AutoOffer {
  const { auto } = account;
  if (!auto?.protocols.includes(protocol)) throw errorOnly(404, "not_found");
  return auto;
}

async function fail({ fault }: AutoOffer, signal: AbortSignal): Promise<void> {
  if (fault === "later") throw errorOnly(503, "unavailable");
  if (fault === "unreadable") throw new Refusal(200, "<html>\n", { "content-type": "text/html" });
  if (fault === "silent") await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
}

const poolOf = (demo: DemoState, account: DemoAccount, { pool }: AutoOffer): Model[] => {
  const visible = visibleModels(demo, account);
  return pool.flatMap((id) => visible.find((model) => model.id === id) ?? []);
};

function take(offer: AutoOffer, models: Model[], sees: boolean): Model {
  const able = sees ? models.filter(({ traits }) => traits.has("vision")) : models;
  const made = offer.made ?? 0;
  offer.made = made + 1;
  return able[made % able.length]!;
}

function issue(demo: DemoState, account: DemoAccount, { lifetime = 86_400 }: AutoOffer): Json {
  const token = randomId("auto_", 32);
  const until = demo.now() + lifetime * 1000;
  demo.autoTokens.set(token, { account, until });
  return { session_token: token, expires_at: Math.floor(until / 1000) };
}

const costs = ({ discount }: AutoOffer, models: Model[]): Json =>
  discount ? Object.fromEntries(models.map(({ id }) => [id, discount / 100])) : {};

/** These endpoints write their errors as a code alone. */
const errorOnly = (status: number, code: string) =>
  new Refusal(status, JSON.stringify({ error: code }), { "content-type": "application/json" });
