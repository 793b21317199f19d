import type { Node } from '../api/types';

const ORDER: ReadonlyArray<Node['state']> = ['alive', 'expired', 'dead'];

/** Who works comes before who did. */
export const livingFirst = (nodes: Node[]): Node[] => nodes.toSorted((a, b) => ORDER.indexOf(a.state) - ORDER.indexOf(b.state));
