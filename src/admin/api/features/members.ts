/** The members of a team. */
import { Elysia } from "elysia";
import { z } from "zod";
import { browserUrl } from "../../../lib/net/in/browser-url";
import { memberLimitsSchema, newMemberSchema } from "../../../people/keys/member-fields";
import { memberListSchema } from "../../../people/keys/member-list";
import { described } from "../../../web/described";
import {
  dismissMember,
  invitedSchema,
  inviteMember,
  limitMember,
  listMembers,
  memberDetailSchema,
  membersQuery,
  showMember,
  shownLimitsSchema,
  withdrawInvitations,
} from "../members";
import { roles, takes } from "../roles";
import { emptyBody } from "../schemas";

export const members = new Elysia({ name: "admin-members" })
  .use(roles)
  .get("/members", ({ app, query }) => listMembers(app, query), {
    owner: true,
    query: membersQuery,
    response: memberListSchema,
    detail: described({
      about: "The members of a team: limits, accounts, keys, open invitation, and what they used this month.",
    }),
  })
  .post("/members", ({ app, body, request }) => inviteMember(app, body, browserUrl(request).origin), {
    owner: true,
    ...takes(newMemberSchema()),
    response: invitedSchema,
    detail: described({
      about:
        'Invites a member, or gives one another link: `{"name"}`, and limits. The response has the link, which works once and cannot be shown again.',
      errors: ["not_found"],
    }),
  })
  .get("/members/:name", ({ app, params }) => showMember(app, params.name), {
    owner: true,
    response: memberDetailSchema,
    detail: described({
      about: "One member, with the names of the keys.",
      errors: ["not_found"],
    }),
  })
  .post("/members/:name/limits", ({ app, body, params }) => limitMember(app, params.name, body), {
    owner: true,
    ...takes(memberLimitsSchema()),
    response: shownLimitsSchema,
    detail: described({
      about: "Changes what a member's keys may do, those that exist too; on every server within a second.",
      errors: ["not_found"],
    }),
  })
  .post("/members/:name/withdraw", ({ app, params }) => withdrawInvitations(app, params.name), {
    owner: true,
    response: z.object({ withdrawn: z.number().describe("How many were open.") }),
    detail: described({
      about: "Takes back a member's open invitation.",
      reads: emptyBody,
      errors: ["not_found"],
    }),
  })
  .post("/members/:name/remove", ({ app, params }) => dismissMember(app, params.name), {
    owner: true,
    response: z.object({ removed: z.literal(true) }),
    detail: described({
      about:
        "Removes a member: their keys are refused on every server within a second, and their accounts are signed out. Answers that run go on to their end.",
      reads: emptyBody,
      errors: ["not_found"],
    }),
  });
