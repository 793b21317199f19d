import type { Node } from '../api/types';

const ORDER: ReadonlyArray<Node['state']> = ['alive', 'expired', 'dead', 'left'];

/** Nodes that are alive come first. */
export const aliveFirst = (nodes: Node[]): Node[] =>
  nodes.toSorted((a, b) => ORDER.indexOf(a.state) - ORDER.indexOf(b.state));
