import {
  ActionIcon,
  Button,
  FileButton,
  Group,
  Paper,
  Stack,
  Text,
  Textarea,
  TextInput,
} from '@mantine/core';
import { useCallback } from 'react';
import { Icon } from '../../../parts/Icon';
import { mediaUrl } from '../../api/call';
import type { Article, Media } from '../../api/types';
import type { ErrorOf } from './useCheck';
import { useUploads } from './useUploads';

interface LinkFieldProps {
  article: Article;
  onChange: (article: Article | null) => void;
  errorOf: ErrorOf;
  imageTypes: string[];
}

/** A link with its own card. LinkedIn does not read the page, so the card is written here. */
export function LinkField({ article, onChange, errorOf, imageTypes }: LinkFieldProps) {
  const set = (change: Partial<Article>) => onChange({ ...article, ...change });
  const onPicture = useCallback(
    (media: Media) => onChange({ ...article, thumbnail: media.id }),
    [article, onChange],
  );
  const { uploads, add, remove } = useUploads(onPicture);
  const [running] = uploads;
  return (
    <Paper withBorder p="sm" radius="md" component="section" aria-label="Link card">
      <Group justify="space-between" mb={4}>
        <Text fw={600} size="sm">
          Link card
        </Text>
        <ActionIcon onClick={() => onChange(null)} aria-label="Remove the link card">
          <Icon name="cross" />
        </ActionIcon>
      </Group>
      <Stack gap="xs">
        <TextInput
          type="url"
          label="Address"
          placeholder="https://"
          value={article.url}
          onChange={(event) => set({ url: event.currentTarget.value })}
          error={errorOf('article.url')}
        />
        <TextInput
          label="Title"
          value={article.title ?? ''}
          onChange={(event) => set({ title: event.currentTarget.value })}
          error={errorOf('article.title')}
        />
        <Textarea
          label="Description"
          value={article.description ?? ''}
          onChange={(event) => set({ description: event.currentTarget.value })}
          error={errorOf('article.description')}
          autosize
          minRows={1}
        />
        <Group gap="sm">
          {article.thumbnail && (
            <img
              src={mediaUrl(article.thumbnail)}
              alt=""
              width={84}
              height={44}
              style={{ objectFit: 'cover' }}
            />
          )}
          <FileButton onChange={(file) => file && add([file])} accept={imageTypes.join(',')}>
            {(props) => (
              <Button {...props} variant="default" size="xs" loading={running?.error === null}>
                {article.thumbnail ? 'Change the picture' : 'Add a picture'}
              </Button>
            )}
          </FileButton>
          {article.thumbnail && (
            <Button variant="subtle" color="gray" size="xs" onClick={() => set({ thumbnail: null })}>
              Remove the picture
            </Button>
          )}
        </Group>
        {running?.error && (
          <Text size="xs" c="red" role="alert" onClick={() => remove(running.key)}>
            {running.error}
          </Text>
        )}
      </Stack>
    </Paper>
  );
}
