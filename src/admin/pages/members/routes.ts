import { Elysia } from "elysia";
import { access, inMenu } from "../access";
import { inviteFromPage, membersPage } from "./list";
import { dismissFromPage, limitFromPage, linkFromPage, memberPage, revokeOfMember, withdrawFromPage } from "./member";

export const members = new Elysia({ name: "members" })
  .use(access)
  .get("/members", ({ ownersPage }) => membersPage(ownersPage), {
    page: "owner",
    detail: inMenu("Members", "setup", { teamOnly: true }),
  })
  .post("/members", ({ ownersPage }) => inviteFromPage(ownersPage), { page: "owner" })
  .get("/members/:name", ({ ownersPage }) => memberPage(ownersPage), { page: "owner" })
  .post("/members/:name/limits", ({ ownersPage }) => limitFromPage(ownersPage), { page: "owner" })
  .post("/members/:name/invite", ({ ownersPage }) => linkFromPage(ownersPage), { page: "owner" })
  .post("/members/:name/withdraw", ({ ownersPage }) => withdrawFromPage(ownersPage), { page: "owner" })
  .post("/members/:name/revoke", ({ ownersPage }) => revokeOfMember(ownersPage), { page: "owner" })
  .post("/members/:name/remove", ({ ownersPage }) => dismissFromPage(ownersPage), { page: "owner" });
