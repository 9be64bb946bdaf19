/** @jsxRuntime automatic @jsxImportSource #jsx */
/** A field of a form, with what it means below it. */
import type { Child } from "./jsx/jsx-runtime";

interface TextFieldProps {
  name: string;
  label: string;
  value: string | null;
  type?: string;
  required?: boolean;
  inputmode?: "numeric";
  children?: Child;
}

export const TextField = ({ name, label, value, type = "text", required, inputmode, children }: TextFieldProps) => (
  <div class="row">
    <label for={`f-${name}`}>{label}</label>
    <div>
      <input
        id={`f-${name}`}
        name={name}
        type={type}
        value={value ?? ""}
        required={required}
        inputmode={inputmode}
        spellcheck="false"
        aria-describedby={`f-${name}-about`}
      />
      <p class="about" id={`f-${name}-about`}>
        {children}
      </p>
    </div>
  </div>
);

/** What is separated by spaces or commas. */
export const wordsIn = (text: string): string[] => text.split(/[\s,]+/).filter(Boolean);
