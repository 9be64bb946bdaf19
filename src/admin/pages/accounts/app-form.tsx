/** @jsxRuntime automatic @jsxImportSource #jsx */
/** The form that signs in a GitHub App of an organization. */
import type { App } from "../../../parts/app";
import { FormRow, TextField } from "../../ui/form-fields";
import type { Markup } from "../../ui/jsx/jsx-runtime";
import { FormTokenInput, type Frame } from "../../ui/layout";

export const AddApp = ({ app, frame }: { app: App; frame: Frame }): Markup => (
  <details id="add-app">
    <summary>Add a GitHub App, billed to an organization</summary>
    <form method="post" action="/admin/accounts/app" class="config" autocomplete="off">
      <FormTokenInput frame={frame} />
      <div class="card">
        <p>
          No person's seat is used. The App needs the organization permission “Copilot Requests” (read), and the
          organization has to allow Copilot requests from GitHub App installations. GitHub documents that for its own
          runtime, and promises it to no other client.
        </p>
        <TextField
          name="app_host"
          label="GitHub"
          value={app.ownAccounts.signInDefaults.enterpriseHost ?? "github.com"}
        />
        <TextField name="app_id" label="App ID" value={null} required={true}>
          Or the client id; both are on the page of the App.
        </TextField>
        <TextField name="installation" label="Installation" value={null} required={true} inputmode="numeric">
          The number at the end of the address of its page, in the settings of the organization.
        </TextField>
        <TextField name="repository" label="Repository" value={null} inputmode="numeric">
          Only for an App with the older repository permission: the number of any repository that it may see.
        </TextField>
        <FormRow
          name="private_key"
          label="Private key"
          about="The whole text of the .pem file. It is kept as the tokens of other accounts are, and not shown again."
          field={(attributes) => (
            <textarea {...attributes} rows="4" required spellcheck="false">
              {""}
            </textarea>
          )}
        />
        <div class="actions">
          <button type="submit">Add</button>
        </div>
      </div>
    </form>
  </details>
);
