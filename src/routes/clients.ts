/** Every path for clients. A feature is a plugin: without its line here it is gone. */
import { Elysia } from "elysia";
import { z } from "zod";
import type { Server } from "../parts/app";
import { type AccessName, access } from "../web/access";
import { type Described, described, endpointsOf } from "../web/described";
import { Served } from "../web/served";
import { chat } from "./chat";
import { embeddings } from "./embeddings";
import { gemini, geminiMethods } from "./gemini/plugin";
import { messages } from "./messages";
import { modelLists } from "./model-lists";
import { probes } from "./probes";
import { providers } from "./providers";
import { responses } from "./responses";
import { responsesSocket } from "./responses-socket/plugin";
import { toolSignIn } from "./tool-sign-in";
import { usages } from "./usages";

const underV1 = new Elysia({ name: "under-v1" })
  .use(chat)
  .use(responses)
  .use(responsesSocket)
  .use(messages)
  .use(embeddings)
  .use(modelLists);

const frontSchema = () =>
  z.object({
    name: z.literal("dragoman"),
    version: z.string(),
    demo: z.string().optional(),
    endpoints: z.array(z.string()),
  });

/** Whether a browser asks for a page to show. */
const wantsPage = ({ headers }: Request): boolean => headers.get("accept")?.includes("text/html") === true;

const toPages = (): Response => new Response(null, { status: 303, headers: { location: "/admin", vary: "accept" } });

const frontPage = (app: Server): z.infer<ReturnType<typeof frontSchema>> => ({
  name: "dragoman",
  version: app.version,
  ...(app.demo ? { demo: "DEMO: the upstream is scripted; no account is used and nothing leaves this machine." } : {}),
  endpoints: [...new Set(clientEndpoints().map(({ path }) => path))],
});

const front = new Elysia({ name: "front" })
  .use(access)
  .get("/", ({ dragoman, request }) => (wantsPage(request) ? toPages() : frontPage(dragoman)), {
    access: "everybody",
    detail: described({
      about: "Name, version and endpoints. A browser, which asks for HTML, is sent to `/admin`.",
      answers: frontSchema,
    }),
  });

export const clients = new Elysia({ name: "clients" })
  .group("/v1", (v1) => v1.use(underV1))
  .use(providers)
  .group("/v1beta", (beta) => beta.use(gemini))
  .use(usages)
  .use(toolSignIn)
  .use(front)
  .use(probes);

/** For callers that know the paths and types. */
export type Clients = typeof clients;

/**
 * The same where a base URL is not as it should be: without the `/v1`, or for messages with two, for whose 404 Claude Code would
 * blame the model. Google's packages from version 3 on expect its methods below `/v1`.
 */
export const otherSpellings = new Elysia({ name: "other-spellings" })
  .use(underV1)
  .group("/v1", (v1) => v1.use(geminiMethods))
  .group("/v1/v1", (twice) => twice.use(messages));

/** What is served at which path, in each spelling. */
export const served = new Served(() => ({ routes: [...clients.routes, ...otherSpellings.routes] }));

/** The endpoints for clients, without their other spellings. */
export const clientEndpoints = (): Described<AccessName>[] => endpointsOf(clients);
