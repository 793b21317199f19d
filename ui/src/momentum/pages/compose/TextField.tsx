import { Input } from '@mantine/core';
import {
  useId,
  useLayoutEffect,
  useRef,
  type ChangeEvent,
  type ClipboardEvent,
  type DragEvent,
  type ReactNode,
  type RefObject,
} from 'react';
import { afterEdit, shownText } from '../../text/mentions';
import { codePoints, splitTokens, tokensOf, visibleLength, type Token } from '../../text/tokens';
import { Counter } from './Counter';
import classes from './TextField.module.css';

interface TextFieldProps {
  value: string;
  onChange: (text: string) => void;
  onFiles: (files: File[]) => void;
  /** The characters as the server counts them, if it has seen this text. */
  counted: number | undefined;
  limit: number | null;
  foldAfter: number | null;
  error: string | undefined;
  dropping: boolean;
  area: RefObject<HTMLTextAreaElement | null>;
  tools: ReactNode;
}

/**
 * The text with marked hashtags and mentions, the fold of the feed, and what is too long. A mention shows its
 * name; `value` has its target, too.
 */
export function TextField(props: TextFieldProps) {
  const { value, onChange, onFiles, counted, limit, foldAfter, error, dropping, area, tools } = props;
  const id = useId();
  const length = counted ?? visibleLength(value);
  const folds = foldAfter !== null && length > foldAfter;
  const shown = shownText(value);
  const cursor = useRef<number | null>(null);
  const onEdit = ({ currentTarget: { value: edited, selectionEnd } }: ChangeEvent<HTMLTextAreaElement>) => {
    const text = afterEdit(value, edited, selectionEnd);
    const now = shownText(text);
    // A pasted mention becomes its name: the cursor keeps its distance from the end.
    if (now !== edited) cursor.current = now.length - (edited.length - selectionEnd);
    onChange(text);
  };
  useLayoutEffect(() => {
    if (cursor.current !== null) area.current?.setSelectionRange(cursor.current, cursor.current);
    cursor.current = null;
  });
  const onPaste = (event: ClipboardEvent) => takeFiles(event, event.clipboardData.files, onFiles);
  const onDrop = (event: DragEvent) => takeFiles(event, event.dataTransfer.files, onFiles);
  return (
    <Input.Wrapper id={id} label="Text" error={error}>
      <div
        className={classes.box}
        data-invalid={error ? true : undefined}
        data-dropping={dropping || undefined}
        onDrop={onDrop}
      >
        <div className={classes.layers}>
          <div className={classes.marks} aria-hidden="true">
            <Marks text={value} foldAfter={folds ? foldAfter : null} limit={limit} />
          </div>
          <textarea
            ref={area}
            id={id}
            className={classes.area}
            value={shown}
            onChange={onEdit}
            onPaste={onPaste}
            placeholder="What do you want to say?"
            aria-invalid={Boolean(error)}
            aria-describedby={error ? `${id}-error` : undefined}
            spellCheck
            data-autofocus
          />
        </div>
        <div className={classes.bar}>
          {tools}
          {limit !== null && <Counter length={length} limit={limit} />}
        </div>
      </div>
      {folds && (
        <span className={classes.foldKey}>
          The feed shows the first {foldAfter} characters, up to this mark, then “see more”.
        </span>
      )}
    </Input.Wrapper>
  );
}

function takeFiles(event: ClipboardEvent | DragEvent, list: FileList, onFiles: (files: File[]) => void) {
  if (list.length === 0) return;
  event.preventDefault();
  onFiles([...list]);
}

function Marks({ text, foldAfter, limit }: { text: string; foldAfter: number | null; limit: number | null }) {
  const tokens = tokensOf(text);
  const [fits, over] = limit === null ? [tokens, []] : splitTokens(tokens, limit);
  const [before, after] = foldAfter === null ? [fits, []] : splitTokens(fits, foldAfter);
  return (
    <>
      <Spans tokens={before} />
      {foldAfter !== null && codePoints(text) > 0 && <span className={classes.fold} />}
      <Spans tokens={after} />
      {over.length > 0 && <mark className={classes.over}>{over.map((token) => token.visible).join('')}</mark>}
      {/* a line break at the end takes up a line only if something follows */ '\u200b'}
    </>
  );
}

function Spans({ tokens }: { tokens: Token[] }) {
  return tokens.map((token, index) =>
    token.kind === 'text' ? (
      token.visible
    ) : (
      // oxlint-disable-next-line react/no-array-index-key -- tokens have no identity but their place
      <span key={index} className={classes.token} data-kind={token.kind} title={token.source}>
        {token.visible}
      </span>
    ),
  );
}
