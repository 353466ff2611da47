/** Controls under their labels. */
import type { ComponentChildren } from 'preact';
import { useId } from 'preact/hooks';

type Attributes = { readonly id: string; readonly 'aria-describedby'?: string };

type FieldProps = {
  readonly label: string;
  /** Read out with it. */
  readonly hint?: string | undefined;
  readonly class?: string;
  readonly children: (attributes: Attributes) => ComponentChildren;
};

export function Field({ label, hint, class: kind = '', children }: FieldProps) {
  const id = useId();
  return (
    <div class={`field ${kind}`}>
      <label for={id}>{label}</label>
      {children({ id, ...(hint === undefined ? {} : { 'aria-describedby': `${id}-hint` }) })}
      {hint !== undefined && (
        <p class="hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
    </div>
  );
}

type TextProps = {
  readonly label: string;
  readonly value: string;
  readonly onValue: (value: string) => void;
  readonly placeholder?: string;
  readonly type?: 'search' | 'text' | 'email' | 'password' | 'url' | 'number';
  readonly hint?: string;
  readonly list?: readonly string[];
  readonly required?: boolean;
  readonly readOnly?: boolean;
  readonly maxLength?: number;
  readonly autocomplete?: string;
  readonly class?: string;
};

export function TextField({ label, hint, value, onValue, list, class: kind, type = 'text', ...rest }: TextProps) {
  const options = useId();
  return (
    <Field label={label} hint={hint} {...(kind === undefined ? {} : { class: kind })}>
      {(attributes) => (
        <>
          <input
            value={value}
            autocomplete="off"
            spellcheck={false}
            onInput={(event) => onValue(event.currentTarget.value)}
            // The types of the library know no field of a type with a list.
            {...({ type, ...rest, ...attributes, ...(list === undefined ? {} : { list: options }) } as object)}
          />
          {list !== undefined && (
            <datalist id={options}>
              {list.map((each) => (
                <option key={each} value={each} />
              ))}
            </datalist>
          )}
        </>
      )}
    </Field>
  );
}

type Option = readonly [value: string, text: string];

type SelectProps = {
  readonly label: string;
  readonly value: string;
  readonly onValue: (value: string) => void;
  readonly options: readonly Option[];
  readonly class?: string;
};

export function SelectField({ label, value, onValue, options, class: kind = '' }: SelectProps) {
  return (
    <Field label={label} class={kind}>
      {(attributes) => <Select {...{ value, onValue, options, attributes }} />}
    </Field>
  );
}

type BareSelect = Omit<SelectProps, 'label' | 'class'> & { readonly attributes: object };

export const Select = ({ value, onValue, options, attributes }: BareSelect) => (
  <select value={value} onChange={(event) => onValue(event.currentTarget.value)} {...attributes}>
    {/* What an address asks for is shown, even where it is no choice. */}
    {!options.some(([each]) => each === value) && <option value={value}>{value}</option>}
    {options.map(([each, text]) => (
      <option key={each} value={each}>
        {text}
      </option>
    ))}
  </select>
);

type CheckProps = {
  readonly label: ComponentChildren;
  readonly checked: boolean;
  readonly onChecked: (checked: boolean) => void;
};

export const Check = ({ label, checked, onChecked }: CheckProps) => (
  <label class="check">
    <input type="checkbox" checked={checked} onChange={(event) => onChecked(event.currentTarget.checked)} />
    {label}
  </label>
);

type ChecksProps<T extends string> = {
  readonly legend: string;
  readonly layout: 'row' | 'grid';
  readonly all: readonly T[];
  readonly chosen: readonly T[];
  /** Gets them in the order of all. */
  readonly onChosen: (chosen: readonly T[]) => void;
};

/** Any number of words out of a few. */
export const Checks = <T extends string>({ legend, layout, all, chosen, onChosen }: ChecksProps<T>) => (
  <fieldset class={`choices ${layout}`}>
    <legend>{legend}</legend>
    {all.map((word) => (
      <Check
        key={word}
        label={word}
        checked={chosen.includes(word)}
        onChecked={(isChosen) => onChosen(all.filter((each) => (each === word ? isChosen : chosen.includes(each))))}
      />
    ))}
  </fieldset>
);

/** As a control takes it: local, without a zone. */
function localTime(rfc3339: string): string {
  const ms = Date.parse(rfc3339);
  if (Number.isNaN(ms)) return '';
  return new Date(ms - new Date(ms).getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}

type TimeProps = {
  readonly label: string;
  readonly value: string;
  readonly onValue: (value: string) => void;
  readonly hint?: string;
};

/** A local time, which is in the address as an instant. Without an end its year takes six digits. */
export const TimeField = ({ label, value, onValue, hint }: TimeProps) => (
  <Field label={label} hint={hint} class="time">
    {(attributes) => (
      <input
        type="datetime-local"
        step="1"
        max="9999-12-31T23:59"
        value={localTime(value)}
        onChange={({ currentTarget: { value: chosen } }) =>
          onValue(chosen === '' ? '' : new Date(chosen).toISOString())
        }
        {...attributes}
      />
    )}
  </Field>
);
