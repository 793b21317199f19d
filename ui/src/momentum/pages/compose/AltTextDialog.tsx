import { Button, Group, Image, Modal, Stack, Textarea, TextInput } from '@mantine/core';
import { useState, type SubmitEvent } from 'react';
import { mediaUrl } from '../../api/call';
import type { DraftFile } from './composerDraft';

interface AltTextDialogProps {
  file: DraftFile;
  onClose: () => void;
  onSave: (change: Pick<DraftFile, 'alt_text' | 'title'>) => void;
}

export function AltTextDialog({ file, onClose, onSave }: AltTextDialogProps) {
  const [alt_text, setAltText] = useState(file.alt_text);
  const [title, setTitle] = useState(file.title);
  const isImage = file.media.kind === 'image';
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    onSave({ alt_text: alt_text.trim(), title: title.trim() });
    onClose();
  };
  return (
    <Modal
      opened
      onClose={onClose}
      title={isImage ? 'Describe the picture' : 'Title'}
      closeButtonProps={{ 'aria-label': 'Close' }}
    >
      <form onSubmit={submit}>
        <Stack>
          {isImage ? (
            <>
              <Image src={mediaUrl(file.media.id)} alt="" mah={260} fit="contain" radius="md" />
              <Textarea
                label="Alt text"
                description="Read to people who cannot see the picture. Say what matters in it."
                value={alt_text}
                onChange={(event) => setAltText(event.currentTarget.value)}
                autosize
                minRows={2}
                data-autofocus
              />
            </>
          ) : (
            <TextInput
              label="Title"
              description="Shown with the file instead of its name."
              placeholder={file.media.name}
              value={title}
              onChange={(event) => setTitle(event.currentTarget.value)}
              data-autofocus
            />
          )}
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
            <Button type="submit">Save</Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}
