/** A group of buttons or a list cannot be `aria-invalid`: it has this attribute instead, and a `tabIndex`. */
const WRONG = '[aria-invalid="true"], [data-error-group="true"]';

/** Moves the view and the focus to the first field with an error, or to `otherwise`. */
export function focusFirstError(
  inside: HTMLElement | null | undefined,
  otherwise?: HTMLElement | null,
): void {
  const form = inside?.closest('[role="dialog"], main') ?? document;
  const fields = [...form.querySelectorAll<HTMLElement>(WRONG)];
  const first = fields.find((field) => field.offsetParent !== null) ?? otherwise;
  first?.scrollIntoView({ block: 'center' });
  first?.focus({ preventScroll: true });
}
