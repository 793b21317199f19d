import { ActionIcon, Button, Group, Input, Progress } from '@mantine/core';
import { useId, useState } from 'react';
import { Icon } from '../../../parts/Icon';
import { mediaUrl } from '../../api/call';
import { Glyph } from '../../parts/Glyph';
import { AltTextDialog } from './AltTextDialog';
import type { DraftFile } from './composerDraft';
import classes from './MediaField.module.css';
import type { RunningUpload } from './useUploads';

interface MediaFieldProps {
  files: DraftFile[];
  uploads: RunningUpload[];
  onChange: (files: DraftFile[]) => void;
  onStop: (key: number) => void;
  error: string | undefined;
}

/** What a person can write about a file. */
const describes = (file: DraftFile) => (file.media.kind === 'image' ? 'Alt text' : 'Title');

/** The files of a post: order, description, removal, and uploads that run. */
export function MediaField({ files, uploads, onChange, onStop, error }: MediaFieldProps) {
  const id = useId();
  const [editing, setEditing] = useState<number | null>(null);
  const [dragged, setDragged] = useState<number | null>(null);
  const [over, setOver] = useState<number | null>(null);
  if (files.length === 0 && uploads.length === 0 && !error) return null;

  const move = (from: number, to: number) => {
    const next = files.toSpliced(from, 1);
    onChange(next.toSpliced(to, 0, files[from]!));
  };
  const edited = editing === null ? undefined : files[editing];
  return (
    <Input.Wrapper id={id} label="Files" labelElement="div" error={error}>
      <ul
        className={classes.list}
        aria-label="Files"
        data-error-group={error ? true : undefined}
        aria-describedby={error ? `${id}-error` : undefined}
        tabIndex={-1}
      >
        {files.map((file, index) => (
          // oxlint-disable-next-line jsx-a11y/no-noninteractive-element-interactions -- buttons do the same by keyboard
          <li
            key={file.media.id}
            className={classes.tile}
            draggable={files.length > 1}
            data-over={over === index || undefined}
            onDragStart={(event) => {
              event.dataTransfer.setData('text/plain', file.media.name);
              setDragged(index);
            }}
            onDragOver={(event) => {
              if (dragged === null) return;
              event.preventDefault();
              setOver(index);
            }}
            onDrop={(event) => {
              if (dragged === null) return;
              event.preventDefault();
              event.stopPropagation();
              move(dragged, index);
            }}
            onDragEnd={() => {
              setDragged(null);
              setOver(null);
            }}
          >
            <div className={classes.picture}>
              {file.media.kind === 'image' ? (
                <img src={mediaUrl(file.media.id)} alt={file.alt_text || file.media.name} draggable={false} />
              ) : (
                <Glyph name={file.media.kind} size={34} />
              )}
            </div>
            <div className={classes.name} title={file.media.name}>
              {file.media.name}
            </div>
            <div className={classes.tools}>
              <Button
                size="compact-xs"
                variant={file.alt_text || file.title ? 'light' : 'default'}
                onClick={() => setEditing(index)}
                aria-label={`${describes(file)} of ${file.media.name}`}
              >
                {describes(file)}
              </Button>
              <Group gap={0} wrap="nowrap">
                {files.length > 1 && (
                  <>
                    <ActionIcon
                      size={24}
                      disabled={index === 0}
                      onClick={() => move(index, index - 1)}
                      aria-label={`Move ${file.media.name} forward`}
                    >
                      <Glyph name="left" size={14} />
                    </ActionIcon>
                    <ActionIcon
                      size={24}
                      disabled={index === files.length - 1}
                      onClick={() => move(index, index + 1)}
                      aria-label={`Move ${file.media.name} back`}
                    >
                      <Glyph name="right" size={14} />
                    </ActionIcon>
                  </>
                )}
                <ActionIcon
                  size={24}
                  onClick={() => onChange(files.toSpliced(index, 1))}
                  aria-label={`Remove ${file.media.name}`}
                >
                  <Icon name="cross" size={14} />
                </ActionIcon>
              </Group>
            </div>
          </li>
        ))}
        {uploads.map((upload) => (
          <UploadTile key={upload.key} upload={upload} onStop={() => onStop(upload.key)} />
        ))}
      </ul>
      {edited && (
        <AltTextDialog
          file={edited}
          onClose={() => setEditing(null)}
          onSave={(change) => onChange(files.with(editing!, { ...edited, ...change }))}
        />
      )}
    </Input.Wrapper>
  );
}

function UploadTile({ upload, onStop }: { upload: RunningUpload; onStop: () => void }) {
  const { name, progress, error } = upload;
  return (
    <li className={classes.tile} data-error={error ? true : undefined}>
      <div className={classes.picture}>
        <Glyph name="upload" size={28} />
      </div>
      <div className={classes.name} title={name}>
        {name}
      </div>
      <div className={classes.status}>
        {error === null ? (
          <Progress.Root size="sm">
            <Progress.Section
              value={progress * 100}
              aria-label={`Upload of ${name}`}
              animated={progress === 1}
            />
          </Progress.Root>
        ) : (
          <span role="alert">{error}</span>
        )}
        <Button size="compact-xs" variant="default" mt={6} onClick={onStop}>
          {error === null ? 'Stop' : 'Remove'}
        </Button>
      </div>
    </li>
  );
}
