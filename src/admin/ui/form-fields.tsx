/** @jsxRuntime automatic @jsxImportSource #jsx */
/** Fields of a form, each with its label and with what it means below it. */
import type { Child, Markup } from "./jsx/jsx-runtime";

/** What ties a field to its label and to the words below it. */
export interface FieldAttributes {
  id: string;
  name: string;
  "aria-describedby": string | undefined;
  "aria-invalid": "true" | undefined;
  autofocus: boolean;
}

interface FormRowProps {
  name: string;
  label: Child;
  /** What the field means. */
  about?: Child;
  /** Why its value was refused: stands below the field, which has the focus. */
  fault?: string | undefined;
  field(attributes: FieldAttributes): Markup;
}

export function FormRow({ name, label, about, fault, field }: FormRowProps): Markup {
  const id = `f-${name.replaceAll(".", "-")}`;
  const aboutId = `${id}-about`;
  const faultId = `${id}-fault`;
  const described = [fault && faultId, about && aboutId].filter(Boolean).join(" ") || undefined;
  const isWrong = fault !== undefined;
  return (
    <div class={["row", isWrong && "wrong"]}>
      <label for={id}>{label}</label>
      <div>
        <div>
          {field({
            id,
            name,
            "aria-describedby": described,
            "aria-invalid": isWrong ? "true" : undefined,
            autofocus: isWrong,
          })}
          {isWrong && (
            <p class="fault" id={faultId}>
              {fault}
            </p>
          )}
        </div>
        {about && (
          <p class="about" id={aboutId}>
            {about}
          </p>
        )}
      </div>
    </div>
  );
}

interface TextFieldProps {
  name: string;
  label: string;
  value: string | null;
  type?: "text" | "date" | "number";
  required?: boolean;
  inputmode?: "numeric";
  /** Of a number. */
  min?: string;
  /** Of a number. */
  step?: "any";
  /** What the field means. */
  children?: Child;
}

/** For names and numbers, not for prose. */
export const TextField = ({ name, label, value, children, type = "text", ...input }: TextFieldProps) => (
  <FormRow
    name={name}
    label={label}
    about={children}
    field={(attributes) => (
      <input {...attributes} {...input} type={type} value={value ?? ""} spellcheck="false" autocapitalize="off" />
    )}
  />
);

interface ChoiceFieldProps {
  name: string;
  label: string;
  /** Each value and the words for it. */
  choices: readonly (readonly [value: string, words: string])[];
  chosen: string | null;
  /** What the field means. */
  children?: Child;
}

export const ChoiceField = ({ name, label, choices, chosen, children }: ChoiceFieldProps) => (
  <FormRow
    name={name}
    label={label}
    about={children}
    field={(attributes) => (
      <select {...attributes}>
        {choices.map(([value, words]) => (
          <option value={value} selected={value === chosen}>
            {words}
          </option>
        ))}
      </select>
    )}
  />
);

interface FilterChoiceProps {
  name: string;
  label: string;
  chosen: string | null;
  options: readonly (readonly [value: string, label: string])[];
}

/** A choice among the filters of a list. */
export const FilterChoice = ({ name, label, chosen, options }: FilterChoiceProps) => (
  <label class="field">
    <span>{label}</span>
    <select name={name}>
      {options.map(([value, text]) => (
        <option value={value} selected={value === (chosen ?? "")}>
          {text}
        </option>
      ))}
    </select>
  </label>
);

/** What is separated by spaces or commas. */
export const wordsIn = (text: string): string[] => text.split(/[\s,]+/).filter(Boolean);
