/** The requests that run now. */
import { Elysia } from "elysia";
import { z } from "zod";
import { described } from "../../../web/described";
import { keyPermit } from "../../access/authorize";
import { answerLive } from "../live-events";
import { cancelRequest } from "../requests";
import { roles } from "../roles";
import { emptyBody, liveEventSchema } from "../schemas";

export const live = new Elysia({ name: "admin-live" })
  .use(roles)
  .get(
    "/live",
    ({ app, request, member }) => answerLive(app, request, member === null ? undefined : keyPermit(app, request)),
    {
      member: true,
      detail: described({
        about:
          "Running and finished requests and the states of the accounts as server-sent events: snapshot, running, finished, accounts; for a member the member's own. The stream ends with the key.",
        answers: { "text/event-stream": liveEventSchema },
      }),
    },
  )
  .post("/live/:requestId/cancel", ({ app, params }) => cancelRequest(app, params.requestId), {
    member: true,
    response: z.object({ cancelled: z.literal(true) }),
    detail: described({
      about: "Ends a running request with an error for its client, on whichever server of a team it runs.",
      reads: emptyBody,
      errors: ["not_found"],
    }),
  });
