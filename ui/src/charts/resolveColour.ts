/** Resolves a CSS colour such as `var(--line)` for a canvas, in the current colour scheme. */
export function resolveColour(colour: string): string {
  const probe = document.createElement('span');
  probe.style.color = colour;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}
