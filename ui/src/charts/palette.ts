/** A colour of the style sheet as a canvas understands it, in the present scheme. */
export function resolve(colour: string): string {
  const probe = document.createElement('span');
  probe.style.color = colour;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}
