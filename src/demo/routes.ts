/** The routes. */
import type { DemoAccount } from "./accounts";
import { admit } from "./auth";
import { chooseAtOnce, chooseByIntent, openSession } from "./auto";
import { chat } from "./chat";
import { embeddings } from "./embeddings";
import { copilotUser, creditUsage, devicePage, exchangeToken, pollDeviceFlow, startDeviceFlow, whoAmI } from "./github";
import { countTokens, messages } from "./messages";
import { answerModelCall, type ModelCall } from "./model-call";
import { visibleModels, wireModel } from "./models";
import { responses } from "./responses";
import type { DemoState, SeenRequest } from "./state";
import { plain, record, refusal } from "./wire";

/** The input of a route's handler. */
export interface Arrival {
  demo: DemoState;
  seen: SeenRequest;
  signal: AbortSignal;
  /** Counts the request as open after the handler has returned, until the returned function is called. */
  hold(): (aborted: boolean) => void;
}

/** `caught` has the groups of the path's pattern. */
type Handler = (arrival: Arrival, caught: string) => Response | Promise<Response>;

export interface Route {
  method: string;
  path: RegExp;
  answer: Handler;
}

export const githubRoutes: Route[] = [
  route("POST", /^\/login\/device\/code$/, ({ demo, seen }) =>
    startDeviceFlow(demo, seen.body, seen.headers.accept ?? "", demo.urls.individual),
  ),
  route("POST", /^\/login\/oauth\/access_token$/, ({ demo, seen }) =>
    pollDeviceFlow(demo, seen.body, seen.headers.accept ?? ""),
  ),
  route("GET", /^\/login\/device$/, devicePage),
  route("GET", /^\/user$/, ({ demo, seen }) => whoAmI(demo, seen.headers.authorization)),
  route("GET", /^\/copilot_internal\/v2\/token$/, ({ demo, seen }) => exchangeToken(demo, seen.headers.authorization)),
  route("GET", /^\/copilot_internal\/user$/, ({ demo, seen }) => copilotUser(demo, seen.headers.authorization)),
  route("GET", /^\/users\/([^/]+)\/settings\/billing\/ai_credit\/usage$/, ({ demo, seen }, login) =>
    creditUsage(demo, login, { authorization: seen.headers.authorization, query: seen.query }),
  ),
];

export const modelRoutes: Route[] = [
  route("GET", /^\/_ping$/, () => new Response("OK\n", { headers: { "content-type": "text/plain" } })),
  route("GET", /^\/models$/, (arrival) => {
    const account = enter(arrival);
    const data = visibleModels(arrival.demo, account).map((model) => wireModel(arrival.demo, account, model));
    return Response.json({ data, object: "list" });
  }),
  route("POST", /^\/auto$/, (arrival) => {
    const { demo, seen, signal } = arrival;
    const version = seen.headers["x-github-api-version"] ?? "";
    return chooseAtOnce(demo, enter(arrival), version, record(seen.body), signal);
  }),
  route("POST", /^\/models\/session$/, (arrival) =>
    openSession(arrival.demo, enter(arrival), record(arrival.seen.body), arrival.signal),
  ),
  route("POST", /^\/models\/session\/intent$/, (arrival) =>
    chooseByIntent(arrival.demo, enter(arrival), arrival.seen.headers, record(arrival.seen.body)),
  ),
  route("POST", /^\/v1\/messages\/count_tokens$/, (arrival) => {
    if (arrival.demo.generation !== "C") throw plain(404, "404 page not found");
    return countTokens(arrival.demo, enter(arrival), record(arrival.seen.body));
  }),
  modelRoute("/embeddings", embeddings),
  ...[chat, responses, messages].map((dialect) =>
    modelRoute(dialect.path, (demo, call) => answerModelCall(demo, call, dialect)),
  ),
];

/** Paths whose requests count as open until their answer ends. */
export const modelPaths = new Set(["/embeddings", chat.path, responses.path, messages.path]);

export async function answerRoute(routes: Route[], arrival: Arrival): Promise<Response> {
  for (const { method, path, answer } of routes) {
    const match = method === arrival.seen.method && path.exec(arrival.seen.path);
    if (match) return answer(arrival, decodeURIComponent(match[1] ?? ""));
  }
  throw plain(404, "404 page not found");
}

function route(method: string, path: RegExp, answer: Handler): Route {
  return { method, path, answer };
}

function modelRoute(path: string, serve: (demo: DemoState, call: ModelCall) => Response | Promise<Response>): Route {
  return route("POST", new RegExp(`^${path}$`), (arrival) => {
    const { demo, seen, signal, hold } = arrival;
    const account = enter(arrival);
    if (typeof seen.body !== "object") throw refusal(400, "invalid_request_body", "failed to parse request");
    return serve(demo, { account, headers: seen.headers, body: record(seen.body), signal, hold });
  });
}

const enter = ({ demo, seen }: Arrival): DemoAccount => admit(demo, seen.host, seen.headers);
