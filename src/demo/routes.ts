/** The routes. */
import { quotaReport } from "./accounting";
import type { DemoAccount } from "./accounts";
import { admit, type Door, person, signedIn } from "./auth";
import { chooseAtOnce, chooseByIntent, describeTiers, openSession } from "./auto";
import { chat } from "./chat";
import { embeddings } from "./embeddings";
import { authorize, creditUsage, devicePage, exchangeToken, pollDeviceFlow, startDeviceFlow, whoAmI } from "./github";
import { countTokens, messages } from "./messages";
import { answerModelCall } from "./model-call";
import { visibleModels, wireModel } from "./models";
import { responses } from "./responses";
import type { Arrival } from "./state";
import { plain, Refusal, refusal } from "./wire";

type Handler = (arrival: Arrival) => Response | Promise<Response>;
type Service = (arrival: Arrival, account: DemoAccount) => Response | Promise<Response>;
export type Route = [method: "GET" | "POST", path: string | RegExp, answer: Handler];

const by =
  (door: Door, serve: Service): Handler =>
  (arrival) =>
    serve(arrival, door(arrival));

export const githubRoutes: Route[] = [
  ["POST", "/login/device/code", startDeviceFlow],
  ["GET", "/login/oauth/authorize", authorize],
  ["POST", "/login/oauth/access_token", pollDeviceFlow],
  ["GET", "/login/device", devicePage],
  ["GET", "/user", by(person, whoAmI)],
  ["GET", "/copilot_internal/v2/token", by(signedIn, exchangeToken)],
  ["GET", "/copilot_internal/user", by(signedIn, ({ demo }, account) => Response.json(quotaReport(demo, account)))],
  ["GET", /^\/users\/[^/]+\/settings\/billing\/ai_credit\/usage$/, by(person, creditUsage)],
];

const generations: Record<string, Service> = {
  [chat.path]: (arrival, account) => answerModelCall(arrival, account, chat),
  [responses.path]: (arrival, account) => answerModelCall(arrival, account, responses),
  [messages.path]: (arrival, account) => answerModelCall(arrival, account, messages),
  "/embeddings": embeddings,
};

/** Paths whose requests count as open until their answer ends. */
export const modelPaths = new Set(Object.keys(generations));

export const modelRoutes: Route[] = [
  ["GET", "/_ping", () => new Response("OK\n", { headers: { "content-type": "text/plain" } })],
  ["GET", "/models", by(admit, listModels)],
  ["GET", "/meta", by(admit, describeTiers)],
  ["POST", "/auto", by(admit, chooseAtOnce)],
  ["POST", "/models/session", by(admit, openSession)],
  ["POST", "/models/session/intent", by(admit, chooseByIntent)],
  ["POST", "/v1/messages/count_tokens", by(admit, countTokens)],
  ...Object.entries(generations).map(([path, serve]): Route => ["POST", path, by(admit, ofJson(serve))]),
];

export async function answerRoute(routes: Route[], arrival: Arrival): Promise<Response> {
  const { method, path } = arrival.seen;
  const isIt = ([its, at]: Route) => its === method && (typeof at === "string" ? at === path : at.test(path));
  const [, , answer] = routes.find(isIt) ?? [];
  if (!answer) throw plain(404, "404 page not found");
  return answer(arrival);
}

function listModels({ demo }: Arrival, account: DemoAccount): Response {
  const data = visibleModels(demo, account).map((model) => wireModel(demo, account, model));
  return Response.json({ data, object: "list" });
}

/** Bytes of a body that is not read, whatever its prompt consists of. */
const maxBody = 20 * 1024 * 1024;

function ofJson(serve: Service): Service {
  return (arrival, account) => {
    const { bytes } = arrival.seen;
    if (arrival.demo.generation !== "A" && bytes.byteLength > maxBody)
      throw new Refusal(413, JSON.stringify({ message: "failed to parse request", code: "" }), {
        "content-type": "application/json",
      });
    if (typeof arrival.seen.body !== "object") throw refusal(400, "invalid_request_body", "failed to parse request");
    return serve(arrival, account);
  };
}
